package plan

import (
	"slices"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	const writer = "    - {name: w, createObjSpec: {workload: integrity, vars: {storageClass: hostdir}}}\n"
	for _, tt := range []struct{ name, actions, want string }{
		{"a restore", writer + `    - {name: s, snapshotSpec: {actionName: w}}
    - {name: b, restoreSpec: {actionName: s}}
    - {name: c, checkSpec: {actionName: b}}
`, ""},
		{"a clone of a clone", writer + `    - {name: a, cloneSpec: {actionName: w}}
    - {name: b, cloneSpec: {actionName: a}}
    - {name: c, checkSpec: {actionName: b}}
`, ""},
		{"a volume in use", writer + "    - {name: c, checkSpec: {actionName: w}}\n", "in use by its workload"},
		{"another workload", `    - {name: w, createObjSpec: {workload: idle, vars: {storageClass: hostdir}}}
    - {name: b, cloneSpec: {actionName: w}}
    - {name: c, checkSpec: {actionName: b}}
`, "no workload writes blocks"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := "apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: x}\nspec:\n  actions:\n" + tt.actions +
				"  slos: [{name: intact, expr: value(c.violations) == 0.0}]\n"
			in := Input{Files: []File{{Name: "x.yaml", Data: []byte(text)}}, Capabilities: local(), Seed: 1}
			_, problems := Load(t.Context(), withObjects(in))
			said := ""
			for _, p := range problems {
				said += p.String() + "\n"
			}
			if (said == "") != (tt.want == "") || !strings.Contains(said, tt.want) {
				t.Errorf("said %q, want %q", said, tt.want)
			}
		})
	}
}

// TestCheckRights checks the rights of a check, whose volumes a pod reads.
func TestCheckRights(t *testing.T) {
	p := good(t, Input{Capabilities: everything(), Seed: 1}, `spec:
  actions:
    - {name: w, createObjSpec: {workload: integrity, vars: {storageClass: sc}}}
    - {name: b, cloneSpec: {actionName: w}}
    - {name: look, checkSpec: {actionName: b}}
`)
	var have []string
	for _, r := range Rights(p) {
		if strings.Contains(r.Why, "look") {
			have = append(have, strings.Split(r.String(), ":")[0])
		}
	}
	for _, want := range []string{"create pods", "delete pods", "get pods", "create secrets", "delete secrets"} {
		if !slices.Contains(have, want) {
			t.Errorf("no right to %s: %v", want, have)
		}
	}
}
