package capture

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/trace"
)

var start = time.Date(2026, 11, 22, 3, 0, 0, 500e6, time.UTC)

func meta(name string, made time.Time) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(made)}
}

func claim(name, size string, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	class := "fast"
	c := &corev1.PersistentVolumeClaim{ObjectMeta: meta(name, start.Add(time.Minute))}
	c.Spec.StorageClassName = &class
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	for _, f := range change {
		f(c)
	}
	return c
}

func bound(size string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName = "pv-" + c.Name
		c.Status.Phase = corev1.ClaimBound
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
}

func of(kind, name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: kind, Name: name}
	}
}

func going(c *corev1.PersistentVolumeClaim) {
	now := metav1.NewTime(start)
	c.DeletionTimestamp = &now
}

func TestTracker(t *testing.T) {
	yes, source, pv := true, "a", "pv-a"
	old := claim("old", "1", bound("1"))
	old.CreationTimestamp = metav1.NewTime(start.Add(-90 * time.Second).Truncate(time.Second))
	snapshot := &api.VolumeSnapshot{ObjectMeta: meta("s", start.Add(time.Minute)),
		Spec: api.VolumeSnapshotSpec{Source: api.VolumeSnapshotSource{PersistentVolumeClaimName: &source}}}
	cut := *snapshot
	cut.Status = &api.SnapshotStatus{ReadyToUse: &yes}
	attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va", UID: "va"},
		Spec: storagev1.VolumeAttachmentSpec{NodeName: "n1",
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}}}
	attached := *attachment
	attached.Status.Attached = true
	pod := &corev1.Pod{ObjectMeta: meta("p", start.Add(time.Minute)), Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "a"}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}}}
	running := pod.DeepCopy()
	running.Spec.NodeName = "n2"
	running.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}

	tr := New(start)
	tr.See(old, 0, 0)
	tr.See(claim("a", "1Gi"), 10, 11)
	tr.See(claim("a", "1Gi", bound("1Gi")), 20, 21)
	tr.See(claim("a", "1Gi", bound("1Gi")), 22, 23) // nothing new
	tr.See(snapshot, 30, 30)
	tr.See(&cut, 35, 36)
	tr.See(claim("r", "1Gi", of("VolumeSnapshot", "s")), 40, 40)
	tr.See(claim("c", "1Gi", of("PersistentVolumeClaim", "a")), 41, 41)
	tr.See(claim("a", "2Gi", bound("1Gi")), 50, 50)
	tr.See(claim("a", "2Gi", bound("2Gi")), 55, 55)
	tr.See(attachment, 60, 60)
	tr.See(pod, 61, 61)
	tr.See(&attached, 64, 64)
	tr.See(running, 66, 66)
	tr.See(&corev1.Pod{ObjectMeta: meta("without", start)}, 67, 67)
	tr.See(claim("a", "2Gi", bound("2Gi"), going), 70, 71)
	tr.Gone(claim("a", "2Gi", bound("2Gi"), going), 72, 75)
	tr.Gone(&attached, 80, 81)
	tr.Gone(claim("c", "1Gi"), 82, 83) // it never became bound
	tr.Failed(claim("refused", "1Gi"), 90, 92)
	tr.Gone(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "unknown", UID: "u"}},
		95, 96)

	const gi = 1 << 30
	want := []trace.Record{
		{Time: -90e9 - 500e6, Op: trace.Create, Kind: trace.Volume, Object: "ns/old", Class: "fast", Size: 1,
			Duration: trace.Unknown},
		{Time: 10, Op: trace.Create, Kind: trace.Volume, Object: "ns/a", Class: "fast", Size: gi, Outcome: "ok",
			Duration: 11},
		{Time: 30, Op: trace.Snapshot, Kind: trace.Snapshots, Object: "ns/s", Source: "ns/a", Outcome: "ok",
			Duration: 6},
		{Time: 40, Op: trace.Restore, Kind: trace.Volume, Object: "ns/r", Source: "ns/s", Class: "fast", Size: gi,
			Outcome: "censored", Duration: 60},
		{Time: 41, Op: trace.Clone, Kind: trace.Volume, Object: "ns/c", Source: "ns/a", Class: "fast", Size: gi,
			Outcome: "censored", Duration: 42},
		{Time: 50, Op: trace.Resize, Kind: trace.Volume, Object: "ns/a", Size: 2 * gi, Outcome: "ok", Duration: 5},
		{Time: 60, Op: trace.Attach, Kind: trace.Attachment, Object: "va", Source: "ns/a", Node: "n1", Outcome: "ok",
			Duration: 4},
		{Time: 61, Op: trace.Create, Kind: trace.Workload, Object: "ns/p", Source: "ns/a ns/p-tmp", Node: "n2",
			Outcome: "ok", Duration: 5},
		{Time: 70, Op: trace.Delete, Kind: trace.Volume, Object: "ns/a", Outcome: "ok", Duration: 5},
		{Time: 80, Op: trace.Detach, Kind: trace.Attachment, Object: "va", Outcome: "ok", Duration: 1},
		{Time: 82, Op: trace.Delete, Kind: trace.Volume, Object: "ns/c", Outcome: "ok", Duration: 1},
		{Time: 90, Op: trace.Create, Kind: trace.Volume, Object: "ns/refused", Outcome: "error", Duration: 2},
		{Time: 95, Op: trace.Delete, Kind: trace.Volume, Object: "ns/unknown", Outcome: "ok", Duration: 1},
		{Time: 100, Op: trace.End, Duration: trace.Unknown},
	}
	if diff := cmp.Diff(want, tr.Trace(100)); diff != "" {
		t.Error(diff)
	}
}

// A volume that no pod mounts grows as far as the controller makes it; one that is mounted, when its node has done
// its part.
func TestResizePending(t *testing.T) {
	pending := func(size string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.Status.AllocatedResources = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
			c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizePending}
		}
	}
	tr := New(start)
	tr.See(claim("loose", "1", bound("1")), 1, 1)
	tr.See(claim("held", "1", bound("1")), 1, 1)
	tr.See(claim("loose", "2", bound("1")), 10, 10)
	tr.See(claim("loose", "2", bound("1"), pending("2")), 13, 13)
	tr.See(claim("loose", "3", bound("1"), pending("2")), 20, 20) // Kubernetes does not carry this out
	tr.See(claim("held", "2", bound("1")), 30, 30)
	tr.See(claim("held", "2", bound("1"), pending("2")), 31, 31)
	tr.See(claim("held", "2", bound("2")), 34, 34)
	tr.See(claim("held", "3", bound("2")), 40, 40)
	tr.See(claim("held", "3", bound("2"), pending("3")), 41, 41)
	var got []trace.Record
	for _, r := range tr.Trace(50) {
		if r.Op == trace.Resize {
			got = append(got, r)
		}
	}
	want := []trace.Record{
		{Time: 10, Op: trace.Resize, Kind: trace.Volume, Object: "ns/loose", Size: 2, Outcome: "ok", Duration: 3},
		{Time: 20, Op: trace.Resize, Kind: trace.Volume, Object: "ns/loose", Size: 3, Outcome: "censored",
			Duration: 30},
		{Time: 30, Op: trace.Resize, Kind: trace.Volume, Object: "ns/held", Size: 2, Outcome: "ok", Duration: 4},
		{Time: 40, Op: trace.Resize, Kind: trace.Volume, Object: "ns/held", Size: 3, Outcome: "ok", Duration: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The log in testdata is that of a real API server (v1.36) behind which a claim was made, bound, attached by a pod,
// snapshotted and removed, shortened to the fields that are read.
func TestFromAudit(t *testing.T) {
	f, err := os.Open("testdata/audit.log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, err := FromAudit(f)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range a.Records {
		got = append(got, fmt.Sprintf("%s %s %s %s", r.Op, r.Object, r.Source, r.Outcome))
		if r.Op != trace.End && (r.Time < 0 || r.Duration <= 0 || r.Duration > int64(30*time.Second)) {
			t.Errorf("%s %s: at %v, took %v", r.Op, r.Object, time.Duration(r.Time), time.Duration(r.Duration))
		}
	}
	want, err := os.ReadFile("testdata/audit.want")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(strings.TrimSuffix(string(want), "\n"), "\n"), got); diff != "" {
		t.Error(diff)
	}
	if a.Bare != 0 || a.Events == 0 {
		t.Errorf("%d events, %d without objects", a.Events, a.Bare)
	}
}

// created is the begin of the log of a claim that is created, without its end of line.
const created = `{"apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"create","objectRef":{"resource":` +
	`"persistentvolumeclaims","namespace":"shop","name":"db"},"responseStatus":{"code":201},"requestReceivedTimestamp":` +
	`"2026-11-22T02:32:28.454171Z","stageTimestamp":"2026-11-22T02:32:28.514373Z","responseObject":{"kind":` +
	`"PersistentVolumeClaim","metadata":{"name":"db","namespace":"shop","uid":"u"},"status":{"phase":"Pending"}}}`

// TestFromAuditLines: what is no event is counted and quoted, what precedes events is left out, and neither hides one.
func TestFromAuditLines(t *testing.T) {
	const other = `{"level":"info","msg":"started"}`
	half := created[:len(created)/2]
	for _, tt := range []struct {
		name, log string
		want      Audit
	}{
		{"plain", created + "\n", Audit{Events: 1}},
		{"without a line break", created, Audit{Events: 1}},
		{"blank lines", "\n" + created + "\r\n\n", Audit{Events: 1}},
		{"node", "master-0 " + created + "\nmaster-0 " + created + "\n", Audit{Events: 2}},
		{"times", "2026-11-22T02:32:28.5Z " + created + "\n2026-11-22T02:32:28.6Z " + created + "\n", Audit{Events: 2}},
		{"pod and time", "[pod/a/b] 2026-11-22T02:32:28.5+01:00 " + created + "\n", Audit{Events: 1}},
		{"runtime", "2026-11-22T02:32:28.5Z stdout F " + created + "\n", Audit{Events: 1}},
		{"torn", created + "\n" + half, Audit{Events: 1, Torn: 2}},
		{"torn with a node", "m " + created + "\nm " + half, Audit{Events: 1, Torn: 2}},
		{"torn before the event", "m " + created + "\nmaste", Audit{Events: 1, Torn: 2}},
		{"others", created + "\n" + other + "\nI1122 x.go:1] started {1}\n" + created + "\n",
			Audit{Events: 2, Unread: 2, First: Unread{Line: 2, Text: other}}},
		{"others first", "Unable to connect\n" + created + "\n",
			Audit{Events: 1, Unread: 1, First: Unread{Line: 1, Text: "Unable to connect"}}},
	} {
		got, err := FromAudit(strings.NewReader(tt.log))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if len(got.Records) != 2 { // the claim, and the end
			t.Errorf("%s: records %+v", tt.name, got.Records)
		}
		got.Records = nil
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestFromAuditEncodings: the records are those of the plain log.
func TestFromAuditEncodings(t *testing.T) {
	log, err := os.ReadFile("testdata/audit.log")
	if err != nil {
		t.Fatal(err)
	}
	want, err := FromAudit(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	utf16, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().Bytes(log)
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, errWrite := z.Write(log)
	if err := errors.Join(errWrite, z.Close()); err != nil {
		t.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, encoded := range map[string][]byte{"mark": append([]byte("\ufeff"), log...), "UTF-16": utf16,
		"gzip": zipped.Bytes(), "zstd": encoder.EncodeAll(log, nil)} {
		got, err := FromAudit(bytes.NewReader(encoded))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	if _, err := FromAudit(bytes.NewReader(zipped.Bytes()[:zipped.Len()/2])); err == nil ||
		!strings.Contains(err.Error(), "the file of gzip is cut off") {
		t.Errorf("cut off: %v", err)
	}
}

func TestFromAuditRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "it is empty",
		"{":                                "line 1: it is cut off, and no line before it is an event",
		"{}":                               `line 1: it is no audit.k8s.io/v1 Event, and neither is another: "{}"`,
		"\nx\ny\n":                         `line 2: it is no audit.k8s.io/v1 Event, and neither is another: "x"`,
		`{"apiVersion":"audit.k8s.io/v1"}`: "line 1: it has no times",
		created + "\n" + created[:len(created)/2] + "\n" + created + "\n": "line 2: unexpected end of JSON input",
		created + "\n" + `{"stage":}` + "\n":                              "line 2: invalid character",
		"a " + created + "\nb " + created + "\n":                          `line 2: it is of "b", lines before it of "a"`,
	} {
		if _, err := FromAudit(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// FuzzFromAudit: whatever a log has, what comes of it is a trace that can be written and read again.
func FuzzFromAudit(f *testing.F) {
	log, err := os.ReadFile("testdata/audit.log")
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(log) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		a, err := FromAudit(bytes.NewReader(log))
		if err != nil || len(a.Records) == 0 {
			return
		}
		var b bytes.Buffer
		if err := trace.Write(&b, "a.jsonl", a.Records); err != nil {
			t.Fatal(err)
		}
		if _, err := trace.Read(&b); err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
	})
}
