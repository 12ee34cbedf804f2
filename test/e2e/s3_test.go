//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/s3"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/servers"
)

// TestBundleInBucket checks that the bundle of a run is in a bucket of a server with TLS when the run has ended, and
// that it is put there later if the credentials were wrong.
func TestBundleInBucket(t *testing.T) {
	b, v := newBox(t), servers.ForTest(t, servers.StartVersityTLS)
	makeBucket(t, v, "results")
	text := head + `spec:
  actions: [{name: v, outputs: {outputName: lines}, rateName: r,
    createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}]
  rates: [{name: r, limit: 20, constantRateSpec: {perSecond: 50}}]
  outputs:
    - {name: lines, fileSpec: {path: results.jsonl}}
    - name: my-s3
      s3Spec: {endpoint: "` + v.Address + `", bucket: results, prefix: lab, caFile: ` + v.Cert + `}
`
	r := b.bench(text).wants(b, 0) // anonymous
	if !strings.Contains(r.stderr, "output my-s3: ") || !strings.Contains(r.stderr, "cnsbench export --pending") {
		t.Fatalf("%v", r)
	}
	if found := b.copies(v, "results/lab/*/manifest.json"); len(found) > 0 {
		t.Fatalf("an anonymous run has stored %v", found)
	}
	asAccount := func(args ...string) result {
		cmd := b.command(t.Context(), b.cnsbench(), args...)
		cmd.Env = append(cmd.Env, "CNSBENCH_OUTPUT_MY_S3_ACCESSKEY="+servers.VersityKey,
			"CNSBENCH_OUTPUT_MY_S3_SECRETKEY="+servers.VersitySecret)
		return b.finish(t.Context(), cmd).wants(b, 0)
	}
	asAccount("export", "--pending", b.bundle(), "--to", v.Address)
	if r := asAccount("export", "--pending", b.bundle(), "--to", v.Address); !strings.Contains(r.stdout, "nothing is pending") {
		t.Errorf("%v", r)
	}
	asAccount("run", b.write("bench.yaml", text), "--out", b.in("second"), "--storage-dir", b.in("storage"))
	found := b.copies(v, "results/lab/*/manifest.json")
	if len(found) != 2 {
		t.Fatalf("bundles %v, want 2", found)
	}
	for _, manifest := range found {
		copied := filepath.Dir(manifest)
		b.run("show", "--verify", copied).wants(b, 0)
		if _, err := os.Stat(filepath.Join(copied, "outputs/results.jsonl")); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(copied, "report.html")); err != nil {
			t.Error(err)
		}
	}
	b.clean()
}

// copies are files in the buckets of a server.
func (b *box) copies(v *servers.Versity, pattern string) []string {
	b.Helper()
	found, err := filepath.Glob(filepath.Join(v.Data, pattern))
	if err != nil {
		b.Fatal(err)
	}
	return found
}

func makeBucket(t *testing.T, v *servers.Versity, name string) {
	t.Helper()
	store, err := s3.New(s3.Config{Settings: map[string]string{"endpoint": v.Address, "cafile": v.Cert},
		Credentials: s3.Credentials{AccessKey: servers.VersityKey, SecretKey: servers.VersitySecret}, Clock: op.NewClock()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := store.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var res client.Result
	if c.Do(t.Context(), &client.Request{Verb: client.MakeContainer, Container: []byte(name)}, &res); !res.OK() {
		t.Fatalf("make bucket %s: %s %s", name, res.Label(), res.Detail)
	}
}
