package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLicenses(t *testing.T) {
	for _, tt := range []struct{ name, sbom, out, err string }{
		{"permitted", `{"components": [{"name": "a", "licenses": [{"license": {"id": "MIT"}}]},
			{"name": "b", "evidence": {"licenses": [{"license": {"id": "Apache-2.0"}}]}}]}`,
			"2 modules: Apache-2.0 1, MIT 1", ""},
		{"not permitted", `{"components": [{"name": "a", "version": "v1", "licenses": [{"license": {"id": "GPL-3.0"}}]}]}`,
			"", `module a v1 has licences ["GPL-3.0"]: none is permitted`},
		{"one of two", `{"components": [{"name": "a", "licenses": [{"license": {"id": "GPL-2.0"}},
			{"license": {"id": "MIT"}}]}]}`, "MIT 1", ""},
		{"unknown", `{"components": [{"name": "a"}]}`, "", "module a"},
		{"empty", `{}`, "", "has no components"},
		{"no JSON", `x`, "", "invalid character"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "sbom.json")
			if err := os.WriteFile(file, []byte(tt.sbom), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			err := run([]string{file}, &out)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if !strings.Contains(out.String(), tt.out) {
				t.Errorf("output %q, want %q", out.String(), tt.out)
			}
		})
	}
}
