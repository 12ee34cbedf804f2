package plan

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPlanIsData checks that the plan of each example is the same after encoding and
// decoding: its encoding, rendered objects, schedules and rights.
func TestPlanIsData(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	for _, on := range []struct {
		name string
		in   Input
	}{{"local", Input{Capabilities: local()}}, {"cluster", Input{Capabilities: everything()}}} {
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			in := on.in
			in.Files, in.Seed = []File{{Name: file, Data: text}}, 7
			in.Open = func(name string) (io.ReadCloser,
				error) {
				return os.Open(filepath.Join(filepath.Dir(file), name))
			}
			p, problems := Load(t.Context(), in)
			if p == nil {
				t.Logf("%s on %s: %v", file, on.name, problems)
				continue
			}
			t.Run(on.name+"/"+filepath.Base(file), func(t *testing.T) { sameAfterJSON(t, p) })
		}
	}
}

// TestRecord checks that the record of a plan has no Secrets.
func TestRecord(t *testing.T) {
	const entry = `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: e, labels: {type: workload}}
data:
  s.yaml: "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {key: hush}}"
  p.yaml: "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}"
`
	file := "apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: x}\nspec: {actions: [{name: w, createObjSpec: {workload: e}}]}" + entry
	p, problems := Load(t.Context(), Input{Capabilities: everything(),
		Files: []File{{Name: "x.yaml", Data: []byte(file)}}})
	if p == nil {
		t.Fatal(problems)
	}
	kept, err := json.Marshal(p.Record())
	if err != nil || strings.Contains(string(kept), "hush") || !strings.Contains(string(kept), "p.yaml") {
		t.Errorf("%v\n%s", err, kept)
	}
	if w, err := p.Actions[0].Workload.Render("r", 0); err != nil || len(w.Secrets) != 1 {
		t.Errorf("the plan itself has lost its Secret: %v", err)
	}
}

func sameAfterJSON(t *testing.T, p *Plan) {
	t.Helper()
	first, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again Plan
	if err := json.Unmarshal(first, &again); err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(&again)
	if diff := cmp.Diff(string(first), string(second)); diff != "" || err != nil {
		t.Errorf("the second encoding differs: %v\n%s", err, diff)
	}
	want, err := Render(p, "r1")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Render(&again, "r1")
	if diff := cmp.Diff(string(want), string(got)); diff != "" || err != nil {
		t.Errorf("it renders otherwise: %v\n%s", err, diff)
	}
	for i, r := range p.Rates {
		if r.Schedule == nil {
			continue
		}
		a, b := r.Schedule.New(p.Seed), again.Rates[i].Schedule.New(again.Seed)
		for range 20 {
			due, ok := a.Next()
			if got, more := b.Next(); got != due || more != ok {
				t.Fatalf("rate %s: trigger %+v, want %+v", r.Name, got, due)
			}
		}
	}
	if diff := cmp.Diff(Rights(p), Rights(&again)); diff != "" {
		t.Errorf("rights differ:\n%s", diff)
	}
}
