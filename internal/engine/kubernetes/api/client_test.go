package api

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/op"
)

// asked is one request as the server met it.
type asked struct {
	Method, Path, Query, ContentType, Accept, Encoding, Authorization string
	Body                                                              string
	HTTP                                                              int
}

// served are the requests that a server got.
type served struct {
	mu   sync.Mutex
	list []asked
}

func (r *served) add(a asked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, a)
}

func (r *served) all() []asked {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// client talks to a TLS server with HTTP/2 on loopback that answers with h.
func client(t *testing.T, h http.HandlerFunc) (*Client, *rest.Config, *served) {
	t.Helper()
	got := &served{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got.add(asked{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Content-Type"),
			r.Header.Get("Accept"), r.Header.Get("Accept-Encoding"), r.Header.Get("Authorization"), string(body), r.ProtoMajor})
		h(w, r)
	}))
	srv.EnableHTTP2 = true
	srv.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 100} // as an API server
	srv.StartTLS()
	t.Cleanup(srv.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	cfg := &rest.Config{Host: srv.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}, BearerToken: "secret"}
	c, err := New(cfg, op.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, cfg, got
}

func answer(w http.ResponseWriter, code int, media string, body []byte) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// TestCreationsShareConnections checks that many creations at once neither open a connection each nor are all in
// flight, and that the wait is no part of a call.
func TestCreationsShareConnections(t *testing.T) {
	const n, slow = 600, 10 * time.Millisecond
	var mu sync.Mutex
	from, now, most := map[string]bool{}, 0, 0
	c, _, _ := client(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now++
		from[r.RemoteAddr], most = true, max(most, now)
		mu.Unlock()
		time.Sleep(slow)
		mu.Lock()
		now--
		mu.Unlock()
		answer(w, http.StatusCreated, Protobuf, encode(claim()))
	})
	if _, err := c.Create(t.Context(), PersistentVolumeClaims, "n", claim(), nil); err != nil { // connects
		t.Fatal(err)
	}
	if waits := c.Waits(); waits != "" {
		t.Error(waits)
	}
	var all sync.WaitGroup
	began, last := c.clock.Now(), op.Time(0)
	for range n {
		all.Go(func() {
			call, err := c.Create(t.Context(), PersistentVolumeClaims, "n", claim(), nil)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			last = max(last, call.Sent)
		})
	}
	all.Wait()
	if most > mostInFlight || len(from) > 2 {
		t.Errorf("%d in flight on %d connections, want at most %d on one or two", most, len(from), mostInFlight)
	}
	if rounds := op.Time(n/mostInFlight - 1); last-began < rounds*op.Time(slow) {
		t.Errorf("the last was sent after %v", time.Duration(last-began))
	}
	if !strings.Contains(c.Waits(), "waited because 100 were in flight, the longest ") {
		t.Error(c.Waits())
	}
	blocked, cancel := context.WithCancel(t.Context())
	cancel()
	for range mostInFlight {
		c.places["delete"] <- struct{}{}
	}
	if _, err := c.Delete(blocked, PersistentVolumeClaims, "n", "c", metav1.DeleteOptions{}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("a deletion without a place: %v", err)
	}
}

func TestCreateIsOneTimedRequest(t *testing.T) {
	const slow = 30 * time.Millisecond
	c, _, requests := client(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(slow)
		made := claim()
		made.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
		made.ResourceVersion, made.UID = "42", "u"
		answer(w, http.StatusCreated, Protobuf, encode(made))
	})
	var sending, told []Call
	c.Sending = func(call Call) { sending = append(sending, call) }
	c.Seen = func(call Call) {
		if told = append(told, call); len(sending) != len(told) || sending[0].Sent != call.Sent ||
			sending[0].Answered != 0 {
			t.Errorf("before it was sent %+v was told, thereafter %+v", sending, call)
		}
	}
	into := &corev1.PersistentVolumeClaim{}
	call, err := c.Create(t.Context(), PersistentVolumeClaims, "n", claim(), into)
	if err != nil {
		t.Fatal(err)
	}
	if into.ResourceVersion != "42" || call.ResourceVersion != "42" || call.UID != "u" || call.Status != 201 ||
		call.Sends != 1 || call.Name != "c" {
		t.Errorf("the call is %+v", call)
	}
	if took := time.Duration(call.Answered - call.Sent); took < slow {
		t.Errorf("a request that took %v is said to have taken %v", slow, took)
	}
	if len(told) != 1 || told[0].ResourceVersion != "42" {
		t.Errorf("told %+v", told)
	}
	request := requests.all()[0]
	sent := &corev1.PersistentVolumeClaim{}
	if err := PersistentVolumeClaims.Decode([]byte(request.Body), sent); err != nil || sent.Name != "c" {
		t.Errorf("the server got %v %v", sent, err)
	}
	request.Body = ""
	want := asked{Method: "POST", Path: "/api/v1/namespaces/n/persistentvolumeclaims", ContentType: Protobuf,
		Accept: Protobuf, Authorization: "Bearer secret", HTTP: 2}
	if d := cmp.Diff(want, request); d != "" {
		t.Error(d)
	}
}

func TestCustomResourcesAreJSON(t *testing.T) {
	c, _, requests := client(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusCreated, JSON,
			[]byte(`{"kind":"VolumeSnapshot","metadata":{"name":"s","resourceVersion":"3"}}`))
	})
	name := "data"
	s := &VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "s"},
		Spec: VolumeSnapshotSpec{Source: VolumeSnapshotSource{PersistentVolumeClaimName: &name}}}
	call, err := c.Create(t.Context(), VolumeSnapshots, "n", s, nil)
	if err != nil || call.ResourceVersion != "3" {
		t.Fatal(call, err)
	}
	want := asked{Method: "POST", Path: "/apis/snapshot.storage.k8s.io/v1/namespaces/n/volumesnapshots",
		ContentType: JSON, Accept: metadataOnly, Authorization: "Bearer secret", HTTP: 2,
		Body: `{"kind":"VolumeSnapshot","apiVersion":"snapshot.storage.k8s.io/v1","metadata":{"name":"s"},"spec":{"source":{"persistentVolumeClaimName":"data"}}}`}
	if d := cmp.Diff(want, requests.all()[0]); d != "" {
		t.Error(d)
	}
}

// No answer is hidden: each failure is one request and an error of api/errors.
func TestFailuresAreNotRetried(t *testing.T) {
	status := func(code int32, reason metav1.StatusReason) []byte {
		return encode(&metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure",
			Code: code, Reason: reason, Message: "because"})
	}
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		is     func(error) bool
		want   Call
		text   string
	}{
		{"conflict", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, 409, Protobuf, status(409, metav1.StatusReasonAlreadyExists))
		}, apierrors.IsAlreadyExists, Call{Status: 409}, "because"},
		{"too many requests", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			answer(w, 429, "text/plain", []byte("too many requests, please try again later"))
		}, apierrors.IsTooManyRequests, Call{Status: 429, RetryAfter: 7 * time.Second}, ""},
		{"overloaded", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			answer(w, 503, "text/plain", []byte("apiserver is shutting down"))
		}, apierrors.IsServiceUnavailable, Call{Status: 503, RetryAfter: time.Second}, ""},
		{"a proxy's page",
			func(w http.ResponseWriter, _ *http.Request) { answer(w, 502, "text/html", []byte("<html>")) },
			apierrors.IsUnexpectedServerError, Call{Status: 502}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl, _, requests := client(t, c.answer)
			call, err := cl.Create(t.Context(), PersistentVolumeClaims, "n", claim(), nil)
			if !c.is(err) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %v (%T)", err, err)
			}
			if len(requests.all()) != 1 || call.Sends != 1 {
				t.Errorf("%d requests came, %d were sent; want 1", len(requests.all()), call.Sends)
			}
			if call.Status != c.want.Status || call.RetryAfter != c.want.RetryAfter || call.Answered < call.Sent {
				t.Errorf("the call is %+v", call)
			}
			if throttled := cl.Throttled(); (throttled == 1) != (call.Status == 429) {
				t.Errorf("%d answers 429 are counted", throttled)
			}
		})
	}
}

func TestNoAnswerIsAnErrorToo(t *testing.T) {
	c, _, _ := client(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	call, err := c.Get(ctx, Pods, "n", "p", &corev1.Pod{})
	if err == nil || !strings.Contains(err.Error(), `get pods "p": `) || call.Status != 0 ||
		call.Answered <= call.Sent {
		t.Errorf("%+v, %v", call, err)
	}
}

func TestDeletePatchGetList(t *testing.T) {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: "5"}}
	c, _, requests := client(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == "DELETE" && strings.HasSuffix(r.URL.Path, "status"):
			answer(w, 200, Protobuf,
				encode(&metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Success"}))
		case r.URL.RawQuery != "":
			answer(w, 200, Protobuf, encode(&corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1",
				Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.Pod{*pod}}))
		default:
			answer(w, 200, Protobuf, encode(pod))
		}
	})
	uid, background := types.UID("u"), metav1.DeletePropagationBackground
	opts := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background}
	if call, err := c.Delete(t.Context(), Pods, "n", "p", opts); err != nil || call.ResourceVersion != "5" {
		t.Error(call, err)
	}
	if call, err := c.Delete(t.Context(), Pods, "n", "status", opts); err != nil || call.ResourceVersion != "" {
		t.Error("a deletion that is answered with a Status: ", call, err)
	}
	got := &corev1.Pod{}
	if _, err := c.Patch(t.Context(), Pods, "n", "p", types.MergePatchType, []byte(`{"a":1}`), got,
		"status"); err != nil || got.Name != "p" {
		t.Error(got, err)
	}
	if _, err := c.Get(t.Context(), Pods, "n", "p", got); err != nil {
		t.Error(err)
	}
	items, call, err := c.List(t.Context(), Pods, "", metav1.ListOptions{LabelSelector: "a=b"})
	if err != nil || len(items) != 1 || items[0].GetName() != "p" || call.ResourceVersion != "9" {
		t.Error(items, call, err)
	}
	const auth = "Bearer secret"
	want := []asked{
		{Method: "DELETE", Path: "/api/v1/namespaces/n/pods/p", ContentType: JSON, Accept: Protobuf,
			Authorization: auth, HTTP: 2,
			Body: `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"},"propagationPolicy":"Background"}`},
		{Method: "DELETE", Path: "/api/v1/namespaces/n/pods/status", ContentType: JSON, Accept: Protobuf,
			Authorization: auth, HTTP: 2,
			Body: `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"},"propagationPolicy":"Background"}`},
		{Method: "PATCH", Path: "/api/v1/namespaces/n/pods/p/status", ContentType: "application/merge-patch+json",
			Accept: Protobuf, Authorization: auth, HTTP: 2, Body: `{"a":1}`},
		{Method: "GET", Path: "/api/v1/namespaces/n/pods/p", Accept: Protobuf, Authorization: auth, HTTP: 2},
		{Method: "GET", Path: "/api/v1/pods", Query: "labelSelector=a%3Db", Accept: Protobuf, Authorization: auth,
			HTTP: 2},
	}
	if d := cmp.Diff(want, requests.all()); d != "" {
		t.Error(d)
	}
}

// A watch's Conn is HTTP/1.1 with a connection of its own, and reads the token from its file.
func TestDialHTTP1(t *testing.T) {
	_, cfg, requests := client(t,
		func(w http.ResponseWriter, r *http.Request) { answer(w, 200, JSON, []byte(r.RemoteAddr)) })
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.BearerToken, cfg.BearerTokenFile = "", file
	peers := map[string]bool{}
	for range 2 {
		conn, err := Dial(cfg, true)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for range 2 {
			resp, err := conn.Send(t.Context(), "GET", "/api/v1/a%2Fb", nil, http.Header{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			peers[string(b)] = true
		}
	}
	if len(peers) != 2 {
		t.Errorf("2 Conns with 2 requests each made connections %v, want 2", peers)
	}
	for _, got := range requests.all() {
		if d := cmp.Diff(asked{Method: "GET", Path: "/api/v1/a%2Fb", Authorization: "Bearer from-file", HTTP: 1},
			got); d != "" {
			t.Error(d)
		}
	}
}

func TestBehindAPath(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(r.URL.EscapedPath())
	}))
	t.Cleanup(srv.Close)
	conn, err := Dial(&rest.Config{Host: srv.URL + "/k8s/clusters/c-1/"}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	resp, err := conn.Send(t.Context(), "GET", Pods.Path("n", "a%b"), nil, http.Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var got string
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil ||
		got != "/k8s/clusters/c-1/api/v1/namespaces/n/pods/a%25b" {
		t.Errorf("the server was asked for %q (%v)", got, err)
	}
}

func TestReadBounded(t *testing.T) {
	if b, err := ReadBounded(strings.NewReader("12345"), 5); err != nil || string(b) != "12345" {
		t.Errorf("%q %v", b, err)
	}
	if _, err := ReadBounded(strings.NewReader("123456"), 5); err == nil {
		t.Error("6 bytes are within 5")
	}
}
