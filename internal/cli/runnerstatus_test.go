package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/runner/runflags"
)

// TestReasonOfWrongFile checks that the status of a Benchmark names the problems of its file, not only their number.
func TestReasonOfWrongFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.yaml")
	const text = "apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: b}\nspec: {actions: [{name: x, rateName: none}]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, _, err := load(t.Context(), &streams{out: io.Discard, err: io.Discard},
		&runFlags{Flags: runflags.Flags{Engine: engineLocal}}, []string{file})
	if reason := failureText(err); !strings.HasPrefix(reason, file+":4:") ||
		!strings.Contains(reason, "spec.actions[0]") {
		t.Errorf("got %q, want the first problem first", reason)
	}
}
