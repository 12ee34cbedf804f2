package plan

import (
	"fmt"
	"strings"
	"testing"
)

// TestNullOfManifest: a variable of a manifest that has no value is as if it were
// not there, but its name must be one. Those of workloads are in testdata/bad.
func TestNullOfManifest(t *testing.T) {
	const name, other = "{{name}}", `the manifest has no variable "title"`
	for vars, want := range map[string]string{
		"{name: a, title: }": other,
		"{name: }":           "needs a value for its variable",
		"{name: a}":          "[]",
	} {
		text := head + "spec:\n  actions: [{name: c, createObjSpec: {vars: " + vars +
			", manifest: {apiVersion: v1, kind: ConfigMap, data: {a: '" + name + "'}}}}]\n"
		files := []File{{Name: "x.yaml", Data: []byte(text)}}
		_, problems := Load(t.Context(), Input{Capabilities: everything(), Files: files})
		if got := fmt.Sprint(problems); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", vars, got, want)
		}
	}
}
