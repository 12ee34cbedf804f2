package watch

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
)

func TestReadFrame(t *testing.T) {
	frame := func(body string) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + body
	}
	long := strings.Repeat("x", 200<<10)
	for _, c := range []struct {
		name, in string
		json     bool
		want     []string
		err      error  // at the end
		text     string // of the error, where it has no value
	}{
		{"none", "", false, nil, io.EOF, ""},
		{"two", frame("one") + frame(long), false, []string{"one", long}, io.EOF, ""},
		{"cut in the length", frame("one") + "\x00\x00", false, []string{"one"}, io.ErrUnexpectedEOF, ""},
		{"cut after the length", "\x00\x00\x00\x05", false, nil, io.ErrUnexpectedEOF, ""},
		{"cut in the body", "\x00\x00\x00\x05four", false, nil, io.ErrUnexpectedEOF, ""},
		{"empty", "\x00\x00\x00\x00", false, nil, nil, "claims 0 bytes"},
		{"too long", "\x02\x00\x00\x01rest", false, nil, nil, "claims 33554433 bytes"},
		{"JSON sent as protobuf", `{"type":"ADDED"}`, false, nil, nil, "claims"},
		{"json none", "", true, nil, io.EOF, ""},
		{"json two", "{}\n\n" + long + "\n", true, []string{"{}\n", long + "\n"}, io.EOF, ""},
		{"json cut", "{}\n{\"a\"", true, []string{"{}\n"}, io.ErrUnexpectedEOF, ""},
		{"json too long", strings.Repeat("y", maxFrame+1) + "\n", true, nil, nil, "longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := bufio.NewReader(iotest.HalfReader(strings.NewReader(c.in)))
			k := api.Kind{JSON: c.json}
			for _, want := range c.want {
				got, err := readFrame(k, r)
				if err != nil || string(got) != want {
					t.Fatalf("a frame of %d bytes and error %v, want %d bytes", len(got), err, len(want))
				}
			}
			_, err := readFrame(k, r)
			if c.err != nil && !errors.Is(err, c.err) || c.text != "" &&
				(err == nil || !strings.Contains(err.Error(), c.text)) {
				t.Errorf("at the end: %v, want %v%s", err, c.err, c.text)
			}
		})
	}
}

// The decoders read what apimachinery writes, with all of a real object.
func TestDecodeFrame(t *testing.T) {
	p := pod("a", "11")
	p.Labels = map[string]string{"cnsbench.dev/run": "r"}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}}
	p.Status.Phase = corev1.PodRunning
	typ, obj, err := decodeFrame(api.Pods, frameOf(false, "MODIFIED", p)[4:])
	if err != nil || typ != Modified {
		t.Fatal(typ, err)
	}
	got := obj.(*corev1.Pod)
	if got.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() != 100 || got.Labels["cnsbench.dev/run"] != "r" ||
		got.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod came as %+v", got)
	}

	s := snapshot("s", "12")
	ready, size := true, resource.MustParse("1Gi")
	s.Status = &snapshotv1.VolumeSnapshotStatus{ReadyToUse: &ready, RestoreSize: &size}
	_, obj, err = decodeFrame(api.VolumeSnapshots, frameOf(true, "ADDED", s))
	if err != nil {
		t.Fatal(err)
	}
	if st := obj.(*api.VolumeSnapshot).Status; st == nil || !*st.ReadyToUse || st.RestoreSize.Value() != 1<<30 {
		t.Errorf("the snapshot came as %+v", st)
	}
}

func TestGarbageIsAnErrorThatNamesTheKind(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  api.Kind
		frame []byte
		want  string
	}{
		{"not protobuf", api.Pods, []byte("junk"), "watch of pods: malformed frame"},
		{"no magic", api.Pods, []byte("\x0a\x05ADDED\x12\x06\x0a\x04junk"),
			"watch of pods: ADDED: decode pods: the data do not begin"},
		{"no such event", api.Pods, frameOf(false, "EXPLODED", pod("a", "1"))[4:], `event type "EXPLODED"`},
		{"another kind", api.Nodes, frameOf(false, "ADDED", pod("a", "1"))[4:],
			`watch of nodes: ADDED: decode nodes: expected a Node, got "Pod"`},
		{"no version", api.Pods, frameOf(false, "ADDED", pod("a", ""))[4:], `ADDED "a" has no resourceVersion`},
		{"not JSON", api.VolumeSnapshots, []byte("{"),
			"watch of volumesnapshots.snapshot.storage.k8s.io: malformed frame"},
		{"an unreadable error", api.VolumeSnapshots, []byte(`{"type":"ERROR","object":{"kind":"Teapot"}}`),
			"an error that cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := decodeFrame(c.kind, c.frame)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzProtobufFrames(f *testing.F) {
	add := func(parts ...[]byte) { f.Add(bytes.Join(parts, nil)) }
	whole := frameOf(false, "ADDED", pod("a", "1"))
	add(whole)
	add(whole, frameOf(false, "ERROR", failure(410, "Expired", "too old")), frameOf(false, "BOOKMARK", pod("", "9")))
	add(whole[:len(whole)-3])
	fuzzFrames(f, api.Pods)
}

func FuzzJSONFrames(f *testing.F) {
	add := func(parts ...[]byte) { f.Add(bytes.Join(parts, nil)) }
	whole := frameOf(true, "ADDED", snapshot("a", "1"))
	add(whole)
	add(whole, frameOf(true, "ERROR", failure(410, "Expired", "too old")), []byte("\n"),
		frameOf(true, "BOOKMARK", snapshot("", "9")))
	add(whole[:len(whole)-3])
	fuzzFrames(f, api.VolumeSnapshots)
}

// fuzzFrames reads a stream as a watch does; what is no error must be usable.
func fuzzFrames(f *testing.F, k api.Kind) {
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReaderSize(bytes.NewReader(data), 16)
		for {
			frame, err := readFrame(k, r)
			if err != nil {
				return
			}
			typ, obj, err := decodeFrame(k, frame)
			if err == nil && (obj == nil || obj.GetResourceVersion() == "" || typ == "") {
				t.Errorf("decoded %q to nothing", frame)
			}
		}
	})
}
