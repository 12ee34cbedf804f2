package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// TestBuiltInEntries reads all entries of the built-in library, each with the name of its folder.
func TestBuiltInEntries(t *testing.T) {
	library, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	names := library.Names()
	if len(names) < 20 {
		t.Errorf("only %q", names)
	}
	for _, name := range names {
		if e, ok := library.Get(name); !ok || e.Name != name {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestSuitesLoad checks that each cell of the built-in suites, and of the studies of Ceph, in full size is valid on a
// cluster, and that each level has its own actions.
func TestSuitesLoad(t *testing.T) {
	library, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	suites, err := filepath.Glob("../../library/suites/*.yaml")
	if err != nil || len(suites) == 0 {
		t.Fatalf("no suites: %v", err)
	}
	for _, name := range []string{"dbench", "fsync", "section-5.2", "section-5.3", "section-5.4", "snapshot-latency"} {
		suites = append(suites, filepath.Join("../../examples/ceph", name+".yaml"))
	}
	for _, name := range suites {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := library.Get("megahit"); !ok && strings.Contains(string(text), "workload: megahit") {
				text = []byte(strings.Replace(string(text), "workload: megahit", "workload: dd", 1))
			}
			in := Input{Files: []File{{Name: filepath.Base(name), Data: text}}, Capabilities: kubernetes(), Seed: 1}
			suite, problems := LoadStudy(in.Files)
			if suite == nil {
				t.Fatal(problems)
			}
			for key, f := range suite.Spec.Factors {
				in.Set = append(in.Set, key+"="+string(f.Values[0]))
			}
			variants := suite.Spec.Variants
			if len(variants) == 0 {
				variants = []v1alpha1.StudyVariant{{}}
			}
			whole := 0 // actions of the first level, which has all
			for _, v := range variants {
				of := in
				for key, value := range v.Set {
					of.Set = append(of.Set[:len(of.Set):len(of.Set)], key+"="+string(value))
				}
				for _, action := range v.Without {
					of.Set = append(of.Set[:len(of.Set):len(of.Set)], fmt.Sprintf("spec.actions.%s=null", action))
				}
				p, problems := Load(t.Context(), withObjects(of))
				if p == nil {
					t.Fatalf("%s: %v", v.Name, problems)
				}
				if whole == 0 {
					whole = len(p.Actions)
				}
				if len(p.Actions) != whole-len(v.Without) {
					t.Errorf("%s has %d of %d actions, without %v", v.Name, len(p.Actions), whole, v.Without)
				}
			}
		})
	}
}
