package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/plan"
)

// TestValidateJSON checks what validate --output json prints, and that nothing else is printed.
func TestValidateJSON(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "b.yaml")
	none := filepath.Join(dir, "none.yaml")
	unused := strings.Replace(volumes, "spec: {", "spec: {rates: [{name: r, constantRateSpec: {interval: 1s}}], ", 1)
	tests := []struct {
		name, text, path string
		code             int
		want             plan.Validation
	}{
		{"valid", volumes, file, exitOK,
			plan.Validation{Valid: true, Name: "volumes", Problems: []plan.Problem{}, Warnings: []plan.Problem{}}},
		{"a warning", unused, file, exitOK, plan.Validation{Valid: true, Name: "volumes", Problems: []plan.Problem{},
			Warnings: []plan.Problem{{File: file, Line: 4, Column: 23, Path: "spec.rates[0].name",
				Message: `no action uses rate "r"`, Hint: "rateName of an action would use it"}}}},
		{"a problem", strings.Replace(volumes, "count: 3", "count: 3.5", 1), file, exitUsage,
			plan.Validation{Problems: []plan.Problem{{File: file, Line: 4, Column: 51,
				Path: "spec.actions[0].createObjSpec.count", Message: "must be a whole number, not 3.5"}},
				Warnings: []plan.Problem{}}},
		{"no such file", volumes, none, exitUsage, plan.Validation{Problems: []plan.Problem{
			{Message: "open " + none + ": no such file or directory"}}, Warnings: []plan.Problem{}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errs := call("validate", "--output", "json", tt.path)
			if code != tt.code || errs != "" {
				t.Errorf("exit %d, want %d; %q", code, tt.code, errs)
			}
			var got plan.Validation
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestValidateSchema checks that the schema is printed, and only without files.
func TestValidateSchema(t *testing.T) {
	code, out, errs := call("validate", "--schema")
	var s struct {
		Schema string `json:"$schema"`
	}
	if err := json.Unmarshal([]byte(out), &s); code != exitOK || errs != "" || err != nil || s.Schema == "" {
		t.Errorf("exit %d, %q, %v", code, errs, err)
	}
	if code, _, errs := call("validate", "--schema", "x.yaml"); code != exitUsage || !strings.Contains(errs, "x.yaml") {
		t.Errorf("exit %d, %q", code, errs)
	}
}
