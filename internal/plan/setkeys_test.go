package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSetKeys checks the keys that are proposed for --set, also without files and of a Study.
func TestSetKeys(t *testing.T) {
	const body = `{actions: [{name: load, createObjSpec: {workload: write-once, vars: {storageClass: hostdir}}},
  {name: v, createObjSpec: {volume: {size: 1Gi}}}, {name: typo, createObjSpec: {workload: foi}}]}`
	benchmark := head + "spec: " + body + "\n"
	study := "apiVersion: cnsbench.dev/v1alpha1\nkind: Study\nmetadata: {name: x}\nspec: {benchmark: " + body + "}\n"
	tests := []struct {
		text, prefix string
		want         []string
	}{
		{"", "", []string{"metadata.name=", "spec.", "vars."}},
		{"", "spec.run", []string{"spec.runtime="}},
		{"", "spec.actions.", nil},
		{"", "vars.", nil},
		{"not: [yaml", "spec.run", []string{"spec.runtime="}},
		{benchmark, "l", []string{"load."}},
		{benchmark, "load.storage", []string{"load.storageClass="}},
		{benchmark, "typo.", nil},
		{benchmark, "v.", nil},
		{benchmark, "spec.actions.", []string{"spec.actions.load.", "spec.actions.typo.", "spec.actions.v."}},
		{benchmark, "spec.actions.v.createObjSpec.vol", []string{"spec.actions.v.createObjSpec.volume."}},
		{benchmark, "spec.actions.v.createObjSpec.volume.si", []string{"spec.actions.v.createObjSpec.volume.size="}},
		{benchmark, "spec.actions.missing.createObjSpec.volume.si",
			[]string{"spec.actions.missing.createObjSpec.volume.size="}},
		{benchmark, "metadata.", []string{"metadata.name="}},
		{study, "spec.actions.l", []string{"spec.actions.load."}},
	}
	for _, tt := range tests {
		got := SetKeys([]File{{Name: "f", Data: []byte(tt.text)}}, tt.prefix)
		if diff := cmp.Diff(tt.want, got); diff != "" && len(tt.want)+len(got) > 0 {
			t.Errorf("%q of %.20q: %s", tt.prefix, tt.text, diff)
		}
	}
}

// FuzzSetKeys checks that every key goes on from what is typed, whatever is in the file.
func FuzzSetKeys(f *testing.F) {
	f.Add(head+"spec: {actions: [{name: load, createObjSpec: {workload: fio}}, 3, [a]]}\n", "spec.actions.")
	f.Add("kind: Study\nspec: {benchmark: {actions: {a: b}}}\n", "vars.")
	f.Add("kind: Benchmark\nspec: [1]\n", "spec.actions.0.")
	f.Fuzz(func(t *testing.T, text, prefix string) {
		for _, key := range SetKeys([]File{{Name: "f", Data: []byte(text)}}, prefix) {
			if !strings.HasPrefix(key, prefix) || !strings.HasSuffix(key, ".") && !strings.HasSuffix(key, "=") {
				t.Errorf("%q for %q", key, prefix)
			}
		}
	})
}
