package awkwarddriver_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/test/awkwarddriver"
)

// served is a driver that serves until the end of a test.
type served struct {
	csi.ControllerClient
	csi.NodeClient
	socket, log string
}

func serve(t *testing.T, c awkwarddriver.Config, flags ...string) *served {
	t.Helper()
	d := awkwarddriver.Serve(t, c, flags...)
	conn, err := grpc.NewClient("unix://"+d.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &served{csi.NewControllerClient(conn), csi.NewNodeClient(conn), d.Socket, d.Log}
}

func (s *served) nothingLeft(t *testing.T) {
	t.Helper()
	if left, err := awkwarddriver.Left(t.Context(), s.socket); err != nil || len(left) > 0 {
		t.Errorf("the driver has %v, %v", left, err)
	}
}

var mount = &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}

func volume(name string) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{Name: name, VolumeCapabilities: []*csi.VolumeCapability{mount},
		CapacityRange: &csi.CapacityRange{RequiredBytes: 64 << 20}}
}

func (s *served) mustCreate(t *testing.T, r *csi.CreateVolumeRequest) *csi.Volume {
	t.Helper()
	got, err := s.CreateVolume(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return got.GetVolume()
}

// TestDemands checks that a call is refused unless it brings what its switch demands.
func TestDemands(t *testing.T) {
	topology := []*csi.Topology{{Segments: awkwarddriver.Segment()}}
	for _, tt := range []struct {
		flag, want string
		bring      func(*csi.CreateVolumeRequest)
	}{
		{"-secrets=all", "provided secret is empty",
			func(r *csi.CreateVolumeRequest) { r.Secrets = awkwarddriver.SecretOf("provisioner") }},
		{"-parameters", "clusterID must be set",
			func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"clusterID": "awkward"} }},
		{"-topology", "no accessibility requirement", func(r *csi.CreateVolumeRequest) {
			r.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: topology}
		}},
	} {
		t.Run(tt.flag, func(t *testing.T) {
			s := serve(t, awkwarddriver.Config{}, tt.flag)
			r := volume("v")
			if _, err := s.CreateVolume(t.Context(), r); status.Code(err) != codes.InvalidArgument ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			tt.bring(r)
			s.mustCreate(t, r)
		})
	}
	s := serve(t, awkwarddriver.Config{}, "-secrets=provisioner")
	r := volume("v")
	r.Secrets = awkwarddriver.SecretOf("node-stage")
	if _, err := s.CreateVolume(t.Context(), r); err == nil || !strings.Contains(err.Error(), `of user "node-stage"`) {
		t.Errorf("the secret of another kind: %v", err)
	}
}

// TestContexts checks that a volume's contexts must come back.
func TestContexts(t *testing.T) {
	s := serve(t, awkwarddriver.Config{}, "-volume-context", "-long-ids")
	v := s.mustCreate(t, volume("v"))
	if id := v.GetVolumeId(); len(id) != 128 || !strings.Contains(id, "/") {
		t.Errorf("the ID is %q", id)
	}
	node, err := s.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	publish := &csi.ControllerPublishVolumeRequest{VolumeId: v.GetVolumeId(), NodeId: node.GetNodeId(),
		VolumeCapability: mount}
	if _, err := s.ControllerPublishVolume(t.Context(), publish); status.Code(err) != codes.InvalidArgument {
		t.Errorf("without a volume context: %v", err)
	}
	publish.VolumeContext = v.GetVolumeContext()
	published, err := s.ControllerPublishVolume(t.Context(), publish)
	if err != nil {
		t.Fatal(err)
	}
	stage := &csi.NodeStageVolumeRequest{VolumeId: v.GetVolumeId(), VolumeCapability: mount,
		StagingTargetPath: filepath.Join(t.TempDir(), "stage"), VolumeContext: v.GetVolumeContext()}
	if _, err := s.NodeStageVolume(t.Context(), stage); status.Code(err) != codes.InvalidArgument {
		t.Errorf("without a publish context: %v", err)
	}
	stage.PublishContext = published.GetPublishContext()
	if _, err := s.NodeStageVolume(t.Context(), stage); err != nil {
		t.Error(err)
	}
}

// TestRepeats checks the answers to repeated requests for one object.
func TestRepeats(t *testing.T) {
	for _, tt := range []struct {
		flag string
		want []codes.Code
		left int // after the first call
	}{
		{"-aborted=CreateVolume=2", []codes.Code{codes.Aborted, codes.Aborted, codes.OK, codes.OK}, 0},
		{"-unavailable=all=1", []codes.Code{codes.Unavailable, codes.OK}, 0},
		{"-timed-out=CreateVolume=1", []codes.Code{codes.DeadlineExceeded, codes.OK}, 1},
		{"-in-progress=1s", []codes.Code{codes.DeadlineExceeded, codes.Aborted, codes.Aborted}, 0},
	} {
		t.Run(tt.flag, func(t *testing.T) {
			s := serve(t, awkwarddriver.Config{}, tt.flag)
			for i, want := range tt.want {
				if _, err := s.CreateVolume(t.Context(), volume("v")); status.Code(err) != want {
					t.Errorf("call %d: %v, want %v", i, err, want)
				}
				if left, err := awkwarddriver.Left(t.Context(), s.socket); i == 0 && (err != nil || len(left) != tt.left) {
					t.Errorf("after call %d the driver has %v, %v; want %d", i, left, err, tt.left)
				}
			}
		})
	}
}

// TestAsyncCopies checks that a clone is ABORTED until it is done, and that its source does not wait.
func TestAsyncCopies(t *testing.T) {
	s := serve(t, awkwarddriver.Config{}, "-async-copies=100ms")
	copied := volume("copy")
	copied.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: s.mustCreate(t, volume("v")).GetVolumeId()}}}
	began, aborted := time.Now(), 0
	for {
		_, err := s.CreateVolume(t.Context(), copied)
		if err == nil {
			break
		}
		if status.Code(err) != codes.Aborted {
			t.Fatal(err)
		}
		aborted++
		time.Sleep(5 * time.Millisecond)
	}
	if took := time.Since(began); took < 100*time.Millisecond || aborted < 2 {
		t.Errorf("done after %v and %d ABORTED", took, aborted)
	}
}

// TestSnapshots checks snapshots that are ready late, and deletions that find nothing.
func TestSnapshots(t *testing.T) {
	s := serve(t, awkwarddriver.Config{}, "-late-ready=80ms", "-not-found", "-no-list-snapshots")
	id := s.mustCreate(t, volume("v")).GetVolumeId()
	for _, ready := range []bool{false, true} {
		got, err := s.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: id})
		if err != nil || got.GetSnapshot().GetReadyToUse() != ready {
			t.Errorf("%v, %v; want ready %t", got, err, ready)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if _, err := s.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("ListSnapshots: %v", err)
	}
	for _, want := range []codes.Code{codes.OK, codes.NotFound} {
		if _, err := s.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id}); status.Code(err) != want {
			t.Errorf("DeleteVolume: %v, want %v", err, want)
		}
	}
}

// TestLog checks that the log has each call, with what it was answered.
func TestLog(t *testing.T) {
	s := serve(t, awkwarddriver.Config{Inject: "rpcs: {CreateVolume: {delay: 20ms}}"}, "-aborted=CreateVolume=1")
	for range 2 {
		_, _ = s.CreateVolume(t.Context(), volume("v"))
	}
	records, err := awkwarddriver.Records(s.log)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range records {
		if r.RPC == "CreateVolume" && r.Name == "v" && r.EndUnixNs-r.StartUnixNs >= int64(20*time.Millisecond) {
			got = append(got, r.Code)
		}
	}
	if strings.Join(got, " ") != "Aborted OK" {
		t.Errorf("the log has %q: %+v", got, records)
	}
}
