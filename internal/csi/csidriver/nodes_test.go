package csidriver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
)

// twoNodes runs a driver that serves the node "local" and a second node, and returns the client of the second one.
func twoNodes(t *testing.T, backend string) (*process, csi.NodeClient) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "b")
	p := start(t, Options{Backend: backend, PoolSize: 4 * gib, Nodes: map[string]string{"b": socket}})
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, conn) })
	return p, csi.NewNodeClient(conn)
}

func (v *testVolume) attachTo(node string) error {
	_, err := v.p.ControllerPublishVolume(v.p.t.Context(),
		&csi.ControllerPublishVolumeRequest{VolumeId: v.id, NodeId: node, VolumeCapability: v.cap})
	return err
}

func (v *testVolume) detachFrom(node string) error {
	_, err := v.p.ControllerUnpublishVolume(v.p.t.Context(),
		&csi.ControllerUnpublishVolumeRequest{VolumeId: v.id, NodeId: node})
	return err
}

// TestVolumeMovesBetweenNodes checks that data written on one node can be read after the volume moves to another node.
func TestVolumeMovesBetweenNodes(t *testing.T) {
	for _, backend := range []string{"null", "loopfile"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			p, b := twoNodes(t, backend)
			if id := ok(b.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{}))(t).GetNodeId(); id != "b" {
				t.Errorf("the second socket answers as node %q", id)
			}
			v := p.create("moves", 64*mib, mountCap(""), nil, nil).use()
			v.write("file", "text")
			wantCode(t, "attaching to a second node", v.attachTo("b"), codes.FailedPrecondition)
			wantCode(t, "attaching to an unknown node", v.attachTo("c"), codes.NotFound)
			wantCode(t, "detaching from a node it is not at", v.detachFrom("b"), codes.OK)

			ok(p.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: v.id,
				TargetPath: v.target}))(t)
			ok(p.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: v.id,
				StagingTargetPath: v.staging}))(t)
			wantCode(t, "detaching", v.detachFrom("local"), codes.OK)
			wantCode(t, "attaching to the second node", v.attachTo("b"), codes.OK)

			if err := os.MkdirAll(v.staging, 0o755); err != nil {
				t.Fatal(err)
			}
			stage := &csi.NodeStageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging, VolumeCapability: v.cap}
			_, err := p.NodeStageVolume(t.Context(), stage)
			wantCode(t, "staging where it is not attached", err, codes.FailedPrecondition)
			ok(b.NodeStageVolume(t.Context(), stage))(t)
			ok(b.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
				VolumeId: v.id, StagingTargetPath: v.staging, TargetPath: v.target, VolumeCapability: v.cap}))(t)
			if backend == "loopfile" {
				if got := v.read("file"); got != "text" {
					t.Errorf("read %q on the second node", got)
				}
			}
			nodes := map[string]bool{}
			for _, r := range p.truthOf("NodeStageVolume") {
				nodes[r.Node] = true
			}
			if !nodes["local"] || !nodes["b"] {
				t.Errorf("the truth log knows of the nodes %v", nodes)
			}
			ok(b.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: v.id,
				TargetPath: v.target}))(t)
			ok(b.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: v.id,
				StagingTargetPath: v.staging}))(t)
			wantCode(t, "detaching from the second node", v.detachFrom("b"), codes.OK)
		})
	}
}

// TestManyNodesAtOnce checks that a volume with a multi-node access mode can be attached to two nodes.
func TestManyNodesAtOnce(t *testing.T) {
	t.Parallel()
	p, _ := twoNodes(t, "null")
	many := mountCap("")
	many.AccessMode.Mode = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	v := p.create("shared", mib, many, nil, nil)
	wantCode(t, "first", v.attachTo("local"), codes.OK)
	wantCode(t, "second", v.attachTo("b"), codes.OK)
	wantCode(t, "one goes", v.detachFrom("local"), codes.OK)
	list := ok(p.ListVolumes(t.Context(), &csi.ListVolumesRequest{}))(t)
	if nodes := list.GetEntries()[0].GetStatus().GetPublishedNodeIds(); len(nodes) != 1 || nodes[0] != "b" {
		t.Errorf("it is attached to %v, want b", nodes)
	}
	wantCode(t, "the other goes", v.detachFrom("b"), codes.OK)
}

// TestLostNode checks the detach from a node that has not unstaged the volume. A backend with devices rejects it.
func TestLostNode(t *testing.T) {
	for backend, want := range map[string]codes.Code{"null": codes.OK, "loopfile": codes.FailedPrecondition} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			p, _ := twoNodes(t, backend)
			v := p.create("lost", 64*mib, mountCap(""), nil, nil).use()
			wantCode(t, "detaching", v.detachFrom("local"), want)
			if want == codes.OK {
				wantCode(t, "attaching elsewhere", v.attachTo("b"), codes.OK)
			}
		})
	}
}
