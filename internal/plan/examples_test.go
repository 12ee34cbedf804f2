package plan

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"

	"github.com/cnsbench/cnsbench/internal/expr"
)

// local returns the capabilities of the local engine.
func local() engine.Capabilities {
	return engine.Capabilities{
		Engine: "local", BuiltInDrivers: true,
		Actions: map[op.Kind]bool{op.Create: true, op.Snapshot: true, op.Restore: true, op.Clone: true,
			op.Resize: true, op.Modify: true, op.Delete: true, op.Check: true,
			op.Reattach: true, op.Rollout: true, op.Kill: true},
		Features: map[string]bool{"groupSnapshot": true, "block": true, "rwx": true, ioLimit: true},
	}
}

// TestExamplesLoad checks that all examples load and render without problems.
func TestExamplesLoad(t *testing.T) {
	var names []string
	for _, pattern := range []string{"../../examples/*.yaml", "../../examples/kubernetes/*.yaml", "../../examples/object/*.yaml", "../../examples/paper/listing1.yaml", "../../examples/paper/section-5.[23]*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: no examples: %v", pattern, err)
		}
		names = append(names, found...)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			on := local()
			if strings.Contains(name, "/kubernetes/") { // requires features of a cluster
				on = everything()
			}
			in := Input{Files: []File{{Name: filepath.Base(name), Data: data}}, Capabilities: on, Seed: 1}
			if study, _ := LoadStudy(in.Files); study != nil { // its first cell
				for key, f := range study.Spec.Factors {
					value := string(f.Values[0])
					if value == "null" { // a class, not the absence of one
						value = strconv.Quote(value)
					}
					in.Set = append(in.Set, key+"="+value)
				}
			}
			p, problems := Load(t.Context(), withObjects(in))
			for _, problem := range problems {
				t.Error(problem)
			}
			if p == nil {
				t.Fatal("no plan")
			}
			out, err := Render(p, "run1")
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v\n%v\n%s", p.Budget, p.Warnings, out)
		})
	}
}

// TestDocumentedObjectives checks that the expressions in docs/reference/objectives.md
// compile.
func TestDocumentedObjectives(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/objectives.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^    expr: '?(.*?)'?$`).FindAllStringSubmatch(string(text), -1)
	if len(found) < 3 {
		t.Fatalf("%d expressions", len(found))
	}
	for _, m := range found {
		if _, err := expr.Compile(m[1], expr.Env{}); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
}

// TestDocumentedClass checks that the StorageClass in docs/reference/benchmark.md is
// valid.
func TestDocumentedClass(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/benchmark.md")
	if err != nil {
		t.Fatal(err)
	}
	_, class, ok := strings.Cut(string(text), "```yaml\n")
	class, _, _ = strings.Cut(class, "```")
	if !ok {
		t.Fatal("there is none")
	}
	p := good(t, Input{}, "spec: {actions: [{name: v, createObjSpec: {volume: {storageClass: slow}}}]}\n---\n"+class)
	if got := p.StorageClasses["slow"].Parameters["driver.cnsbench.dev/pool-size"]; got != "40Gi" {
		t.Errorf("pool-size %q", got)
	}
}

// TestPaperLines checks that the experiments of the paper need fewer lines than its
// Table 1 says. Complete files in block style count, without comments.
func TestPaperLines(t *testing.T) {
	for name, table1 := range map[string]int{"section-5.2.yaml": 19, "section-5.3.yaml": 35,
		"section-5.3-snapshots.yaml": 54, "section-5.4.yaml": 72} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("../../examples/paper", name))
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for line := range strings.Lines(string(data)) {
				line = strings.TrimSpace(line)
				if line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				n++
				if strings.ContainsAny(line, "{[") {
					t.Errorf("%s: not in block style", line)
				}
			}
			if n >= table1 {
				t.Errorf("%d lines, the paper had %d", n, table1)
			}
			t.Logf("%d lines, the paper had %d", n, table1)
		})
	}
}
