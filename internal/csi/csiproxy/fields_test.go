package csiproxy

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

func service(method string) string {
	for path := range methods() {
		if strings.HasSuffix(path, "/"+method) {
			return path
		}
	}
	return ""
}

func TestExtract(t *testing.T) {
	for _, tt := range []struct {
		method string
		m      proto.Message
		want   Subject
	}{
		{"CreateVolume", &csi.CreateVolumeRequest{Name: "pvc-1", VolumeContentSource: &csi.VolumeContentSource{
			Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: "s1"}}}}, Subject{Name: "pvc-1", Source: "s1"}},
		{"CreateVolume", &csi.CreateVolumeRequest{Name: "pvc-2", VolumeContentSource: &csi.VolumeContentSource{
			Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: "v1"}}}}, Subject{Name: "pvc-2", Source: "v1"}},
		{"CreateVolume", &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: "v2", CapacityBytes: 7}},
			Subject{Volume: "v2"}},
		{"CreateSnapshot", &csi.CreateSnapshotRequest{Name: "snapshot-1", SourceVolumeId: "v1"},
			Subject{Name: "snapshot-1", Source: "v1"}},
		{"CreateSnapshot", &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{SnapshotId: "s1", SourceVolumeId: "v1"}},
			Subject{Snapshot: "s1"}},
		{"DeleteSnapshot", &csi.DeleteSnapshotRequest{SnapshotId: "s1"}, Subject{Snapshot: "s1"}},
		{"ControllerPublishVolume", &csi.ControllerPublishVolumeRequest{VolumeId: "v1", NodeId: "n1"},
			Subject{Volume: "v1", Node: "n1"}},
		{"NodePublishVolume", &csi.NodePublishVolumeRequest{VolumeId: "v1", TargetPath: "/t", StagingTargetPath: "/s"},
			Subject{Volume: "v1", Path: "/t"}},
		{"NodeStageVolume", &csi.NodeStageVolumeRequest{VolumeId: "v1", StagingTargetPath: "/s"},
			Subject{Volume: "v1", Path: "/s"}},
		{"NodeExpandVolume", &csi.NodeExpandVolumeRequest{VolumeId: "v1", VolumePath: "/v"},
			Subject{Volume: "v1", Path: "/v"}},
		{"CreateVolumeGroupSnapshot", &csi.CreateVolumeGroupSnapshotRequest{Name: "g",
			SourceVolumeIds: []string{"v1", "v2"}}, Subject{Name: "g", Source: "v1,v2"}},
		{"CreateVolumeGroupSnapshot",
			&csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: &csi.VolumeGroupSnapshot{GroupSnapshotId: "g1",
				Snapshots: []*csi.Snapshot{{SnapshotId: "s1"},
					{SnapshotId: "s2"}}}}, Subject{Group: "g1", Snapshot: "s1,s2"}},
		{"DeleteVolumeGroupSnapshot", &csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: "g1",
			SnapshotIds: []string{"s1", "s2"}}, Subject{Group: "g1", Snapshot: "s1,s2"}},
		{"GetPluginInfo", &csi.GetPluginInfoResponse{Name: "d"}, Subject{Name: "d"}},
		{"NodeGetInfo", &csi.NodeGetInfoResponse{NodeId: "n1"}, Subject{Node: "n1"}},
		{"DeleteVolume", &csi.DeleteVolumeRequest{VolumeId: strings.Repeat("x", 5000)},
			Subject{Volume: strings.Repeat("x", maxText)}},
		{"DeleteVolume", &csi.DeleteVolumeRequest{}, Subject{}},
	} {
		name := string(proto.MessageName(tt.m))
		t.Run(name, func(t *testing.T) {
			b, err := proto.Marshal(tt.m)
			if err != nil {
				t.Fatal(err)
			}
			m, ok := methods()[service(tt.method)]
			if !ok {
				t.Fatalf("CSI has no %s", tt.method)
			}
			f := m.request
			if strings.HasSuffix(name, "Response") {
				f = m.response
			}
			if diff := cmp.Diff(tt.want, extract(b, f)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFieldPaths checks that every entry of the table matches a field of this version of CSI.
func TestFieldPaths(t *testing.T) {
	found := map[int]bool{}
	var collect func(fields)
	collect = func(f fields) {
		for _, at := range f {
			found[at.path] = true
			collect(at.below)
		}
	}
	for _, m := range methods() {
		collect(m.request)
		collect(m.response)
	}
	for i, w := range fieldPaths {
		if !found[i] {
			t.Errorf("no message of CSI has %s", w.path)
		}
	}
	if len(methods()) < 20 {
		t.Errorf("%d RPCs are known", len(methods()))
	}
}

const hush = "hush"

// fill sets every string field in a message; secret ones are set to hush.
func fill(m protoreflect.Message, depth int) {
	all := m.Descriptor().Fields()
	for i := range all.Len() {
		fd := all.Get(i)
		text := "x"
		if secret(fd) {
			text = hush
		}
		value := protoreflect.ValueOfString(text)
		switch {
		case fd.IsMap():
			if fd.MapValue().Kind() == protoreflect.StringKind {
				m.Mutable(fd).Map().Set(value.MapKey(), value)
			}
		case fd.IsList() && fd.Kind() == protoreflect.StringKind:
			m.Mutable(fd).List().Append(value)
		case fd.IsList() && fd.Message() != nil && depth < 4:
			fill(m.Mutable(fd).List().AppendMutable().Message(), depth+1)
		case fd.IsList():
		case fd.Kind() == protoreflect.StringKind:
			m.Set(fd, value)
		case fd.Message() != nil && depth < 4:
			fill(m.Mutable(fd).Message(), depth+1)
		}
	}
}

// TestSecrets checks that no secret is extracted from any message of CSI.
func TestSecrets(t *testing.T) {
	secrets := 0
	for path, m := range methods() {
		for _, side := range []struct {
			suffix string
			f      fields
		}{{"Request", m.request}, {"Response", m.response}} {
			kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("csi.v1." + m.name + side.suffix))
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			message := kind.New()
			fill(message, 0)
			b, err := proto.Marshal(message.Interface())
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(b), hush) {
				secrets++
			}
			s := extract(b, side.f)
			for _, text := range []string{s.Name, s.Node, s.Volume, s.Snapshot, s.Group, s.Source, s.Path} {
				if strings.Contains(text, hush) {
					t.Errorf("%s: a secret was read: %+v", path, s)
				}
			}
		}
	}
	if secrets < 10 {
		t.Errorf("only %d messages had secrets: this test has shown nothing", secrets)
	}
}

// FuzzExtract checks that extract accepts any bytes, and that the name it reads from a valid message equals the one
// that protobuf decodes.
func FuzzExtract(f *testing.F) {
	for _, m := range []proto.Message{
		&csi.CreateVolumeRequest{Name: "pvc-1", Secrets: map[string]string{"a": "b"}},
		&csi.CreateVolumeRequest{Name: "pvc-2", VolumeContentSource: &csi.VolumeContentSource{
			Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: "v1"}}}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-1])
		f.Add(append(b, b...))
	}
	all := methods()
	known := all[service("CreateVolume")]
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, m := range all {
			extract(b, m.request)
			extract(b, m.response)
		}
		var m csi.CreateVolumeRequest
		if err := proto.Unmarshal(b, &m); err != nil || len(m.Name) > maxText {
			return
		}
		if got := extract(b, known.request); got.Name != m.Name {
			t.Errorf("read %q, protobuf reads %q", got.Name, m.Name)
		}
	})
}
