package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	groupv1beta2 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1beta2"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

var protobufSerializer = func() runtime.Serializer {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), Protobuf)
	if !ok {
		panic("apimachinery has no protobuf")
	}
	return info.Serializer
}()

func encode(obj runtime.Object) []byte {
	var b bytes.Buffer
	if err := protobufSerializer.Encode(obj, &b); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", Labels: map[string]string{"a": "b"},
			ResourceVersion: "7"},
		Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
	}
}

// What Encode writes, apimachinery reads; and the other way round.
func TestEncodeAndDecodeAgreeWithApimachinery(t *testing.T) {
	data, err := PersistentVolumeClaims.Encode(claim())
	if err != nil {
		t.Fatal(err)
	}
	read, gvk, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if *gvk != PersistentVolumeClaims.GVK() {
		t.Errorf("encoded as a %v", gvk)
	}
	want := claim()
	want.TypeMeta = metav1.TypeMeta{} // not in protobuf's objects
	got := read.(*corev1.PersistentVolumeClaim)
	got.TypeMeta = metav1.TypeMeta{}
	if !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}

	want.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
	back := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "left over",
		Annotations: map[string]string{"x": "y"}}}
	if err := PersistentVolumeClaims.Decode(encode(want), back); err != nil {
		t.Fatal(err)
	}
	want.TypeMeta = metav1.TypeMeta{}
	if !cmp.Equal(want, back) {
		t.Error(cmp.Diff(want, back))
	}
}

func TestDecodeList(t *testing.T) {
	remaining := int64(3)
	l := &corev1.PersistentVolumeClaimList{TypeMeta: metav1.TypeMeta{APIVersion: "v1",
		Kind: "PersistentVolumeClaimList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "99", Continue: "more", RemainingItemCount: &remaining}}
	for _, name := range []string{"a", "b"} {
		c := claim()
		c.Name = name
		l.Items = append(l.Items, *c)
	}
	meta, items, err := PersistentVolumeClaims.DecodeList(encode(l))
	if err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(l.ListMeta, meta) {
		t.Error(cmp.Diff(l.ListMeta, meta))
	}
	if len(items) != 2 || !cmp.Equal(&l.Items[1], items[1].(*corev1.PersistentVolumeClaim)) {
		t.Errorf("%d items, the second different:\n%s", len(items), cmp.Diff(&l.Items[1], items[1]))
	}
	data, err := json.Marshal(&snapshotv1.VolumeSnapshotList{TypeMeta: metav1.TypeMeta{Kind: "VolumeSnapshotList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "98"}, Items: []snapshotv1.VolumeSnapshot{{ObjectMeta: metav1.ObjectMeta{Name: "s"}}}})
	if err != nil {
		t.Fatal(err)
	}
	meta, items, err = VolumeSnapshots.DecodeList(data)
	if err != nil || meta.ResourceVersion != "98" || len(items) != 1 || items[0].GetName() != "s" {
		t.Errorf("%v %v %v", meta, items, err)
	}
}

func TestDecodeSaysWhatIsWrong(t *testing.T) {
	status := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Message: "no such thing"}
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"empty", PersistentVolumeClaims.Decode(nil, claim()),
			"decode persistentvolumeclaims: the data do not begin as Kubernetes' protobuf"},
		{"JSON", PersistentVolumeClaims.Decode([]byte("{}"), claim()), "the data do not begin"},
		{"garbage", PersistentVolumeClaims.Decode([]byte("k8s\x00\xff\xff"), claim()),
			"decode persistentvolumeclaims: "},
		{"a pod", PersistentVolumeClaims.Decode(encode(pod), claim()), `expected a PersistentVolumeClaim, got "Pod"`},
		{"a status", PersistentVolumeClaims.Decode(encode(status), claim()), "got a Status: no such thing"},
		{"a JSON status", VolumeSnapshots.Decode([]byte(`{"kind":"Status","message":"nothing"}`), &VolumeSnapshot{}),
			"got a Status: nothing"},
		{"not a list", func() error { _, _, err := Pods.DecodeList(encode(pod)); return err }(),
			`decode list of pods: expected a PodList, got "Pod"`},
		{"a bad item", func() error {
			_, _, err := VolumeSnapshots.DecodeList([]byte(`{"kind":"VolumeSnapshotList","items":[{},{"spec":3}]}`))
			return err
		}(), "item 1: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
				t.Errorf("error %v, want %q", c.err, c.want)
			}
		})
	}
	var other *NotThisKind
	if err := PersistentVolumeClaims.Decode(encode(status), claim()); !errors.As(err, &other) || other.Status == nil {
		t.Errorf("%v carries no Status", err)
	}
}

// Our slim types read what the snapshotter's write, and write what its read.
func TestSlimTypesAreTheSnapshottersTypes(t *testing.T) {
	name, handle, text, yes, bytes, size := "x", "h", "why", true, int64(5), resource.MustParse("1Gi")
	now := metav1.Unix(1_700_000_000, 0)
	meta := metav1.ObjectMeta{Name: "o", Labels: map[string]string{"a": "b"}}
	serr := &snapshotv1.VolumeSnapshotError{Time: &now, Message: &text}
	for _, c := range []struct {
		theirs, ours any
		again        any // theirs, read from ours
	}{
		{&snapshotv1.VolumeSnapshot{ObjectMeta: meta,
			Spec: snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &name}, VolumeSnapshotClassName: &name},
			Status: &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &name, CreationTime: &now,
				ReadyToUse:  &yes,
				RestoreSize: &size, Error: serr, VolumeGroupSnapshotName: &name}},
			&VolumeSnapshot{}, &snapshotv1.VolumeSnapshot{}},
		{&snapshotv1.VolumeSnapshotContent{ObjectMeta: meta,
			Spec: snapshotv1.VolumeSnapshotContentSpec{VolumeSnapshotRef: corev1.ObjectReference{Kind: "VolumeSnapshot",
				Namespace: "n", Name: "s", UID: "u"},
				DeletionPolicy: snapshotv1.VolumeSnapshotContentRetain, Driver: "d", VolumeSnapshotClassName: &name,
				Source: snapshotv1.VolumeSnapshotContentSource{VolumeHandle: &handle}},
			Status: &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: &handle, CreationTime: &bytes,
				RestoreSize: &bytes, ReadyToUse: &yes,
				Error: serr, VolumeGroupSnapshotHandle: &handle}},
			&VolumeSnapshotContent{}, &snapshotv1.VolumeSnapshotContent{}},
		{&snapshotv1.VolumeSnapshotClass{ObjectMeta: meta, Driver: "d", Parameters: map[string]string{"k": "v"},
			DeletionPolicy: "Delete"},
			&VolumeSnapshotClass{}, &snapshotv1.VolumeSnapshotClass{}},
		{&groupv1beta2.VolumeGroupSnapshot{ObjectMeta: meta,
			Spec: groupv1beta2.VolumeGroupSnapshotSpec{VolumeGroupSnapshotClassName: &name,
				Source: groupv1beta2.VolumeGroupSnapshotSource{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}},
			Status: &groupv1beta2.VolumeGroupSnapshotStatus{BoundVolumeGroupSnapshotContentName: &name,
				CreationTime: &now, ReadyToUse: &yes, Error: serr}},
			&VolumeGroupSnapshot{}, &groupv1beta2.VolumeGroupSnapshot{}},
	} {
		name := fmt.Sprintf("%T", c.theirs)
		t.Run(name, func(t *testing.T) {
			recode(t, c.theirs, c.ours)
			recode(t, c.ours, c.again)
			if d := cmp.Diff(c.theirs, c.again); d != "" {
				t.Error(d)
			}
		})
	}
}

func recode(t *testing.T, from, into any) {
	t.Helper()
	b, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestPath(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Pods.Path("", ""), "/api/v1/pods"},
		{Pods.Path("n", "p"), "/api/v1/namespaces/n/pods/p"},
		{Pods.Path("n", "p", "eviction"), "/api/v1/namespaces/n/pods/p/eviction"},
		{PersistentVolumes.Path("ignored", "a/b"), "/api/v1/persistentvolumes/a%2Fb"},
		{VolumeSnapshots.Path("n", ""), "/apis/snapshot.storage.k8s.io/v1/namespaces/n/volumesnapshots"},
		{VolumeGroupSnapshots("v1beta2").Path("n", "g"),
			"/apis/groupsnapshot.storage.k8s.io/v1beta2/namespaces/n/volumegroupsnapshots/g"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}

func FuzzDecodeProtobuf(f *testing.F) {
	c := claim()
	c.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
	l := &corev1.PersistentVolumeClaimList{TypeMeta: metav1.TypeMeta{APIVersion: "v1",
		Kind: "PersistentVolumeClaimList"}, Items: []corev1.PersistentVolumeClaim{*c}}
	f.Add(encode(c))
	f.Add(encode(l))
	f.Add(encode(&metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Message: "m"}))
	fuzzDecode(f, PersistentVolumeClaims)
}

func FuzzDecodeJSON(f *testing.F) {
	f.Add([]byte(`{"kind":"VolumeSnapshot","metadata":{"name":"s","resourceVersion":"1"},"status":{"readyToUse":true,"restoreSize":"1Gi"}}`))
	f.Add([]byte(`{"kind":"VolumeSnapshotList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"s"}}]}`))
	f.Add([]byte(`{"kind":"Status","message":"m","code":410}`))
	fuzzDecode(f, VolumeSnapshots)
}

// fuzzDecode: nothing panics, and an object is not also a list or a status.
func fuzzDecode(f *testing.F, k Kind) {
	f.Fuzz(func(t *testing.T, data []byte) {
		err := k.Decode(data, k.New())
		_, items, listErr := k.DecodeList(data)
		if err == nil && (listErr == nil || Status(data) != nil) {
			t.Errorf("%q is two things", data)
		}
		if listErr != nil && items != nil {
			t.Errorf("%d items beside the error %v", len(items), listErr)
		}
	})
}

// Metadata of a custom resource comes in protobuf, or in JSON from a server that has no protobuf form of it.
func TestMetadataOfCustomResources(t *testing.T) {
	meta := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "u", ResourceVersion: "3"}}
	list := metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "9"},
		Items: []metav1.PartialObjectMetadata{meta}}
	wrapped := func(kind string, m message) []byte {
		raw, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: kind}, Raw: raw}
		b, err := u.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return append(slices.Clone(magic), b...)
	}
	for name, answers := range map[string][2][]byte{
		"protobuf": {wrapped("PartialObjectMetadata", &meta), wrapped("PartialObjectMetadataList", &list)},
		"JSON": {[]byte(`{"kind":"VolumeSnapshot","metadata":{"name":"s","uid":"u","resourceVersion":"3"}}`),
			[]byte(`{"kind":"VolumeSnapshotList","metadata":{"resourceVersion":"9"},` +
				`"items":[{"metadata":{"name":"s","uid":"u"}}]}`)},
	} {
		version, uid, err := VolumeSnapshots.identify(answers[0])
		if err != nil || version != "3" || uid != "u" {
			t.Errorf("%s: version %q, UID %q, %v", name, version, uid, err)
		}
		k := VolumeSnapshots
		k.New = metadataKind.New
		of, items, err := k.DecodeList(answers[1])
		if err != nil || of.ResourceVersion != "9" || len(items) != 1 || items[0].GetUID() != "u" {
			t.Errorf("%s: list of version %q: %v, %v", name, of.ResourceVersion, items, err)
		}
	}
}
