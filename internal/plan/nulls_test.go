package plan

import (
	"fmt"
	"strings"
	"testing"
)

// TestNullOfManifest checks that a manifest variable with a null value counts as not
// set, but that its name must be known. testdata/bad covers variables of workloads.
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
