package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// compiled is the schema, which the compiler checks against the schema of draft 7.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Benchmark))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("cnsbench.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("cnsbench.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// documents are the documents of a YAML text as JSON values.
func documents(t *testing.T, name, text string) (docs []any) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(text))
	for {
		var v any
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return docs
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		docs = append(docs, doc)
	}
}

// TestExamplesFit checks that the schema accepts all examples and suites.
func TestExamplesFit(t *testing.T) {
	s := compiled(t)
	n := 0
	for _, pattern := range []string{"../../examples/*.yaml", "../../examples/*/*.yaml", "../../library/suites/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range documents(t, file, string(text)) {
				if fields, ok := d.(map[string]any); !ok || fields["kind"] == nil {
					continue // prices
				}
				n++
				if err := s.Validate(d); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	}
	if n < 50 {
		t.Errorf("%d documents", n)
	}
}

// TestMistakesDoNotFit checks that an editor marks common mistakes.
func TestMistakesDoNotFit(t *testing.T) {
	const good = `apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: x}
spec:
  actions:
    - {name: v, rateName: r, createObjSpec: {count: 3, volume: {storageClass: hostdir}}}
  rates:
    - {name: r, constantRateSpec: {interval: 1s}}
`
	s := compiled(t)
	if err := s.Validate(documents(t, "good", good)[0]); err != nil {
		t.Fatal(err)
	}
	for _, mistake := range [][2]string{{"count: 3", "count: 3.5"}, {"count", "cuont"}, {"kind: Benchmark", "kind: Benchmrk"},
		{"v1alpha1", "v1"}, {"{name: x}", "{}"}, {"interval: 1s", "interval: soon"}, {"interval: 1s", "interval: 1"},
		{"volume: {", "workload: fio, volume: {"}, {"createObjSpec", "snapshotSpec: {actionName: v}, createObjSpec"},
		{"spec:", "spec:\n  rutime: 1m"}} {
		text := strings.Replace(good, mistake[0], mistake[1], 1)
		if err := s.Validate(documents(t, mistake[1], text)[0]); err == nil {
			t.Errorf("%s instead of %s fits", mistake[1], mistake[0])
		}
	}
}
