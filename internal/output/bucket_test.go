package output

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/s3"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/servers"
)

// gateway is a versitygw behind a proxy that can fail.
type gateway struct {
	*servers.Versity
	proxy *httptest.Server

	mu   sync.Mutex
	puts []string // keys, in order
	// fault is the status to answer request n with instead, from 1; 0: none, -1: the connection is closed.
	fault func(n int) int
	n     int
}

var versityAccount = Account{AccessKey: servers.VersityKey, SecretKey: servers.VersitySecret}

// newGateway starts a versitygw with the bucket "results".
func newGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{Versity: servers.ForTest(t, servers.StartVersity)}
	to, err := url.Parse(g.Address)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // it is signed
	}}
	g.proxy = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.n++
		status := 0
		if g.fault != nil {
			status = g.fault(g.n)
		}
		if status == 0 {
			g.puts = append(g.puts, r.URL.Path)
		}
		g.mu.Unlock()
		switch status {
		case 0:
			forward.ServeHTTP(w, r)
		case -1:
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(status)
		}
	}))
	t.Cleanup(g.proxy.Close)
	store, err := s3.New(s3.Config{Settings: map[string]string{"endpoint": g.Address}, Credentials: versityAccount,
		Clock: op.NewClock()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := store.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var res client.Result
	if c.Do(t.Context(), &client.Request{Verb: client.MakeContainer, Container: []byte("results")}, &res); !res.OK() {
		t.Fatalf("make a bucket: %s %s", res.Label(), res.Detail)
	}
	return g
}

func (g *gateway) bucket() *Bucket {
	return &Bucket{Name: "s3", Bucket: "results", Prefix: "lab/a", Account: versityAccount,
		Settings: map[string]string{"endpoint": g.proxy.URL, "timeout": "2000"}}
}

// stored is where the files of a bundle are.
func (g *gateway) stored(b *bundle.Bundle) string {
	return filepath.Join(g.Data, "results/lab/a", b.Run.Name+"-"+b.Run.ID)
}

// TestUpload: a bundle in a bucket is one that can be read and verified; failures on the way are retried.
func TestUpload(t *testing.T) {
	g := newGateway(t)
	b, _ := demo(t)
	g.fault = func(n int) int { return []int{0, http.StatusServiceUnavailable, -1, http.StatusTooManyRequests}[n%4] }
	st := g.bucket().Upload(t.Context(), b, quick)
	files, err := b.Files()
	if err != nil {
		t.Fatal(err)
	}
	if st.Delivered != int64(len(files)) || st.Pending+st.Refused != 0 || st.Error != "" || st.Retried < st.Delivered {
		t.Errorf("%+v of %d files", st, len(files))
	}
	if last := g.puts[len(g.puts)-1]; !strings.HasSuffix(last, "/manifest.json") ||
		slices.ContainsFunc(g.puts[:len(g.puts)-1], func(key string) bool { return key == last }) {
		t.Errorf("the manifest is not last, or twice: %q", g.puts)
	}
	for _, file := range files {
		want, err := os.ReadFile(filepath.Join(b.Dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(g.stored(b), file)); err != nil || string(got) != string(want) {
			t.Errorf("%s: %d bytes, want %d: %v", file, len(got), len(want), err)
		}
	}
	copied, err := bundle.Open(g.stored(b))
	if err != nil || !copied.Complete {
		t.Fatalf("the copy is not whole: %v", err)
	}
	if err := copied.Verify(); err != nil {
		t.Error(err)
	}
}

// TestUploadRefused: a refusal ends the upload, and its reason is said without the secret.
func TestUploadRefused(t *testing.T) {
	g := newGateway(t)
	b, _ := demo(t)
	for _, tt := range []struct {
		name   string
		change func(*Bucket)
		want   string
	}{
		{"another secret", func(t *Bucket) { t.Account.SecretKey = "opensesame" }, "403 SignatureDoesNotMatch"},
		{"no bucket", func(t *Bucket) { t.Bucket = "absent" }, "404 NoSuchBucket"},
	} {
		to := g.bucket()
		tt.change(to)
		st := to.Upload(t.Context(), b, quick)
		if st.Delivered != 0 || st.Refused == 0 || st.Pending == 0 || !strings.Contains(st.Error, tt.want) ||
			strings.Contains(st.Error, "opensesame") {
			t.Errorf("%s: %+v", tt.name, st)
		}
	}
}

// TestUploadAway: an upload to a store that does not answer ends with its context, and counts all files.
func TestUploadAway(t *testing.T) {
	b, _ := demo(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	to := &Bucket{Name: "s3", Bucket: "results", Account: versityAccount,
		Settings: map[string]string{"endpoint": gone.URL}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	st := to.Upload(ctx, b, quick)
	files, err := b.Files()
	if err != nil || st.Pending != int64(len(files)) || st.Retried == 0 || !strings.Contains(st.Error, "refused") {
		t.Errorf("%+v, %v", st, err)
	}
}

// TestBucketSettings: settings that cannot be are found before a run.
func TestBucketSettings(t *testing.T) {
	for want, to := range map[string]Bucket{
		"belong together": {Account: Account{AccessKey: "a"}, Settings: map[string]string{"endpoint": "http://s3"}},
		"cafile":          {Settings: map[string]string{"endpoint": "https://s3", "cafile": "/absent"}},
	} {
		if err := to.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
