package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/runner/runflags"
)

// files creates files below a directory.
func files(t *testing.T, dir string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNothingBesideAnObject checks that a Benchmark in a cluster cannot refer to local files and folders, even if they
// exist where its runner runs.
func TestNothingBesideAnObject(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"mine/w/pod.yaml": "kind: Pod", "t.csv": "# cnsbench trace 1\n", "b.yaml": `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: beside}
spec:
  library: [{folderSpec: {path: mine}}]
  actions: [{name: v, rateName: t, createObjSpec: {volume: {storageClass: "null"}}}]
  rates: [{name: t, traceRateSpec: {source: t.csv}}]
`})
	var said strings.Builder
	_, _, _, err := load(t.Context(), &streams{out: io.Discard, err: &said},
		&runFlags{Flags: runflags.Flags{Engine: engineLocal, InCluster: true}}, []string{filepath.Join(dir, "b.yaml")})
	if err == nil {
		t.Error("taken")
	}
	for _, want := range []string{`folder "mine" cannot be read here`, "cnsbench run", "configMapSpec",
		`trace "t.csv" cannot be read here`} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is not in\n%s", want, &said)
		}
	}
}

// TestTraceIsRecorded checks that the run's record names the replayed trace file, for local runs and for runs in a pod.
func TestTraceIsRecorded(t *testing.T) {
	dir := t.TempDir()
	const text = "# cnsbench trace 1\ntime,op,kind,object\n0,create,volume,a\n1,create,volume,b\n"
	main := filepath.Join(dir, "b.yaml")
	files(t, dir, map[string]string{"t.csv": text, "b.yaml": `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: traced}
spec:
  actions: [{name: v, rateName: r, createObjSpec: {volume: {storageClass: "null"}}}]
  rates: [{name: r, traceRateSpec: {source: t.csv}}]
`})
	parts := t.TempDir()
	files(t, parts, map[string]string{"000": text[:20], "001": text[20:]})
	want := []bundle.Trace{{Rate: "r", File: "t.csv", SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(text))),
		Records: 2}}
	for where, flags := range map[string][]string{"here": nil, "in a pod": {"t.csv=" + parts}} {
		main := main
		if flags != nil { // so that the trace is not next to the Benchmark
			main = filepath.Join(t.TempDir(), "b.yaml")
			b, err := os.ReadFile(filepath.Join(dir, "b.yaml"))
			if err != nil || os.WriteFile(main, b, 0o600) != nil {
				t.Fatal(err)
			}
		}
		p, given, _, err := load(t.Context(), &streams{out: io.Discard, err: t.Output()},
			&runFlags{Flags: runflags.Flags{Engine: engineLocal, Files: flags}}, []string{main})
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		described := new(runFlags).describe("id", p, given, op.NewClock(), "")
		if diff := cmp.Diff(want, described.Source.Traces); diff != "" {
			t.Errorf("%s (-want +got):\n%s", where, diff)
		}
	}
}

// TestWorkloadsAreRecorded checks that the run's record names the workloads, with the origin of their library and a
// checksum.
func TestWorkloadsAreRecorded(t *testing.T) {
	record := func(manifest string) []bundle.Workload {
		dir := t.TempDir()
		files(t, dir, map[string]string{"mine/one/pod.yaml": manifest, "b.yaml": `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: mine}
spec:
  library: [{folderSpec: {path: mine}}]
  actions:
    - {name: a, createObjSpec: {workload: one}}
    - {name: b, createObjSpec: {workload: one}}
    - {name: c, createObjSpec: {workload: idle, vars: {storageClass: "null"}}}
`})
		p, given, _, err := load(t.Context(), &streams{out: io.Discard, err: t.Output()},
			&runFlags{Flags: runflags.Flags{Engine: engineLocal}}, []string{filepath.Join(dir, "b.yaml")})
		if err != nil {
			t.Fatal(err)
		}
		return new(runFlags).describe("id", p, given, op.NewClock(), "").Source.Workloads
	}
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i, command: [sleep, %q]}]}\n"
	before, after := record(fmt.Sprintf(pod, "1")), record(fmt.Sprintf(pod, "2"))
	if len(before) != 2 || before[0].Name != "one" || before[0].Origin != "mine" || before[1].Name != "idle" ||
		before[1].Origin != "built in" {
		t.Fatalf("%+v", before)
	}
	if before[0].SHA256 == after[0].SHA256 || before[1] != after[1] {
		t.Errorf("%+v, then, with another manifest of the first, %+v", before, after)
	}
}
