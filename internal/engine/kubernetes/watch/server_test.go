package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
)

// served is a scripted API server in memory, so that its clock can be virtual; what it sends is encoded by
// apimachinery's own serializers. A handler for each resource, by its last path element.
type served map[string]http.HandlerFunc

// start serves until the test ends and returns how to reach it.
func (s served) start(t *testing.T) *rest.Config {
	t.Helper()
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := s[path.Base(r.URL.Path)]
		if h == nil {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound,
				"the server could not find the requested resource")
			return
		}
		h(w, r)
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return &rest.Config{Host: "http://apiserver", Dial: l.dial}
}

type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	mine, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return mine, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// isWatch and isMark tell the requests apart; what is neither is a full list.
func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") == "1" }
func isMark(r *http.Request) bool  { return r.URL.Query().Get("limit") == "1" }

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(failure(code, reason, message))
}

func failure(code int, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message}
}

var protobuf = func() runtime.SerializerInfo {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		panic("apimachinery has no protobuf")
	}
	return info
}()

// listing answers a list of pods or snapshots.
func listing(w http.ResponseWriter, version string, items ...runtime.Object) {
	if len(items) > 0 {
		if _, ok := items[0].(*snapshotv1.VolumeSnapshot); ok {
			listingSnapshots(w, version, items...)
			return
		}
	}
	l := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, i := range items {
		l.Items = append(l.Items, *i.(*corev1.Pod))
	}
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	if err := protobuf.Serializer.Encode(l, w); err != nil {
		panic(err)
	}
}

func listingSnapshots(w http.ResponseWriter, version string, items ...runtime.Object) {
	l := &snapshotv1.VolumeSnapshotList{TypeMeta: metav1.TypeMeta{Kind: "VolumeSnapshotList",
		APIVersion: "snapshot.storage.k8s.io/v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: []snapshotv1.VolumeSnapshot{}}
	for _, i := range items {
		l.Items = append(l.Items, *i.(*snapshotv1.VolumeSnapshot))
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(l)
}

// out writes the frames of one watch.
type out struct {
	w    http.ResponseWriter
	json bool
}

// watching accepts a watch, as the API server does: headers at once.
func watching(w http.ResponseWriter, r *http.Request) *out {
	media := r.Header.Get("Accept")
	o := &out{w: w, json: strings.Contains(media, "json")}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(http.StatusOK)
	o.raw()
	return o
}

func (o *out) raw(parts ...[]byte) {
	for _, p := range parts {
		_, _ = o.w.Write(p)
	}
	o.w.(http.Flusher).Flush()
}

func (o *out) send(typ string, obj runtime.Object) { o.raw(frameOf(o.json, typ, obj)) }

// frameOf is the event as the API server frames it.
func frameOf(isJSON bool, typ string, obj runtime.Object) []byte {
	var b bytes.Buffer
	if isJSON {
		raw, err := json.Marshal(obj)
		if err == nil {
			err = json.NewEncoder(&b).Encode(metav1.WatchEvent{Type: typ, Object: runtime.RawExtension{Raw: raw}})
		}
		if err != nil {
			panic(err)
		}
		return b.Bytes()
	}
	raw, err := runtime.Encode(protobuf.Serializer.(runtime.Encoder), obj)
	if err != nil {
		panic(err)
	}
	stream := protobuf.StreamSerializer
	e := streaming.NewEncoder(stream.Framer.NewFrameWriter(&b), stream.Serializer)
	if err := e.Encode(&metav1.WatchEvent{Type: typ, Object: runtime.RawExtension{Raw: raw}}); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func pod(name, version string) *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n", ResourceVersion: version,
			UID: types.UID("uid-" + name)}}
}

func snapshot(name, version string) *snapshotv1.VolumeSnapshot {
	return &snapshotv1.VolumeSnapshot{TypeMeta: metav1.TypeMeta{Kind: "VolumeSnapshot",
		APIVersion: "snapshot.storage.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n", ResourceVersion: version,
			UID: types.UID("uid-" + name)}}
}

// seen is an Event as tests compare it.
type seen struct {
	Type     Type
	Name     string
	Version  string
	At       op.Time
	Err      int64
	Interval bool
	From, To op.Time
}

// recorder is a handler that remembers.
type recorder struct {
	mu     sync.Mutex
	events []seen
	gaps   []Gap
}

func (r *recorder) handle(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events,
		seen{e.Type, e.Object.GetName(), e.Object.GetResourceVersion(), e.At, e.Err, e.Interval, e.From, e.To})
}

func (r *recorder) gap(g Gap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gaps = append(r.gaps, g)
}

func (r *recorder) take() []seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.events
	r.events = nil
	return got
}

var pods = []Source{{Kind: api.Pods, Namespace: "n"}}
