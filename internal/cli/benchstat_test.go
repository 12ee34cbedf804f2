package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
)

// TestBenchstatRoundTrip: the benchstat output of a comparison can be imported, and compares as before.
func TestBenchstatRoundTrip(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "azure.txt")
	code, text, errs := cnsbench(t, "", "compare", importAzure(t), "--factor", "provider", "--output", "benchstat")
	if code != 0 {
		t.Fatal(errs)
	}
	text = strings.ReplaceAll(text, "/provider=OpenEBS ", "/provider=OpenEBS-3-1 ") // OpenEBS-3 on one processor
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// The file is given without a level: the names have it. As another factor, the file has one itself.
	for _, factor := range []string{"provider", "file"} {
		dir := filepath.Join(t.TempDir(), "study")
		if code, _, errs = cnsbench(t, "", "import", "benchstat", file, "--factor", factor, "--out", dir); code != 0 {
			t.Fatal(errs)
		}
		code, out, errs := cnsbench(t, "", "compare", dir, "--factor", "provider", "--output", "json")
		var r compare.Result
		if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil {
			t.Fatal(code, errs, err)
		}
		levels := map[string]int{}
		for _, c := range r.Cells {
			levels[c.Level] += c.N
		}
		if len(levels) != 4 || levels["OpenEBS-3"] != 200 || levels["Portworx"] != 200 || len(r.Comparisons) != 60 {
			t.Errorf("--factor %s: %v, %d comparisons", factor, levels, len(r.Comparisons))
		}
	}
	dir := filepath.Join(t.TempDir(), "study")
	code, _, errs = cnsbench(t, "", "import", "benchstat", "old="+file, "--out", dir)
	if code == 0 || !strings.Contains(errs, "but the file is given as old: leave out the level of the file") {
		t.Errorf("%d %s", code, errs)
	}
}
