package s3

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/option"
	"github.com/cnsbench/cnsbench/test/servers"
)

// TestRemovalThatEndsEarly checks that a versioned bucket whose removal is interrupted or refused at any of its DELETE
// requests can still be removed.
func TestRemovalThatEndsEarly(t *testing.T) {
	v := servers.ForTest(t, servers.StartVersity)
	to, err := url.Parse(v.Address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host }}
	var left atomic.Int64 // DELETE requests before the one that ends it
	var end atomic.Pointer[func(http.ResponseWriter) bool]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := end.Load(); f != nil && r.Method == "DELETE" && left.Add(-1) < 0 && (*f)(w) {
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer server.Close()
	s := open(t, map[string]string{"endpoint": server.URL}, Credentials{AccessKey: servers.VersityKey,
		SecretKey: servers.VersitySecret})
	refuse := func(w http.ResponseWriter) bool { w.WriteHeader(503); return true }
	for _, interrupted := range []bool{false, true} {
		for deletes := range int64(6) { // two versions, a delete marker, two versions of the mark and the bucket
			bucket := []byte("versions")
			fill(t, s, bucket)
			c, err := s.Client()
			if err != nil {
				t.Fatal(err)
			}
			f := refuse
			if interrupted {
				f = func(http.ResponseWriter) bool { c.Abort(); return false }
			}
			left.Store(deletes)
			end.Store(&f)
			var res client.Result
			c.Do(t.Context(), &client.Request{Verb: client.RemoveContainer, Container: bucket}, &res)
			c.Close()
			end.Store(nil)
			if res.OK() {
				t.Errorf("interrupted %v, after %d deletes: %s", interrupted, deletes, res.Label())
			}
			if res = do(t, s, &client.Request{Verb: client.RemoveContainer, Container: bucket}); !res.OK() &&
				!res.Absent() {
				t.Fatalf("interrupted %v, after %d deletes, again: %s %s", interrupted, deletes, res.Label(), res.Detail)
			}
		}
	}
}

// fill makes a bucket with two versions and a delete marker of a deleted object, and two versions of its mark.
func fill(t *testing.T, s *Store, bucket []byte) {
	t.Helper()
	versioned := &option.Set{Versioning: true}
	for _, r := range []client.Request{{Verb: client.MakeContainer, Options: versioned}, {Verb: client.Put, Size: 4096},
		{Verb: client.Put, Size: 4096}, {Verb: client.Delete}} {
		r.Container, r.Object = bucket, []byte("o")
		if res := do(t, s, &r); !res.OK() || res.Code == client.Existed {
			t.Fatalf("verb %d: %s %s", r.Verb, res.Label(), res.Detail)
		}
	}
	c := &adapter{store: s, HTTP: client.NewHTTP(s.endpoint),
		sign: signer{region: s.region, access: servers.VersityKey, secret: servers.VersitySecret}}
	defer c.Close()
	var res client.Result
	if c.Begin(&res); !c.mark(t.Context(), bucket, &res) {
		t.Fatalf("%s %s", res.Label(), res.Detail)
	}
}

// TestWhole checks that the delete marker of a key whose versions go on behind a listing is left.
func TestWhole(t *testing.T) {
	a, b := version{key: "a", id: "1"}, version{key: "b", id: "1"}
	markerA, markerB := version{key: "a", id: "2", marker: true}, version{key: "b", id: "2", marker: true}
	for _, tt := range []struct{ list, want []version }{
		{[]version{a, b, markerA, markerB}, []version{a, b, markerA}}, {[]version{markerB}, []version{markerB}},
	} {
		if got := whole(tt.list); !slices.Equal(got, tt.want) {
			t.Errorf("%v, want %v", got, tt.want)
		}
	}
}
