package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportedStudy: show describes an imported study; a table of means has no medians.
func TestImportedStudy(t *testing.T) {
	t.Parallel()
	dir := importText(t, "p,v,u\na,1,ms\na,3,ms\na,,ms\nb\x1b[31m,7,ms\n", "--missing")
	means := filepath.Join(t.TempDir(), "means")
	args := []string{"import", "csv", "-", "--out", means, "--factor", "p", "--mean", "m", "--sd", "s"}
	if code, _, errs := cnsbench(t, "p,m,s\na,10,2\n", args...); code != 0 {
		t.Fatal(errs)
	}
	for _, tt := range []struct {
		args []string
		says []string
	}{
		{[]string{"show", dir}, []string{"study: imported (csv)", "source: standard input, 38 bytes, SHA-256 ",
			"4 rows, 1 metric, 2 levels of p, 1 cell without a value", "v       a          2 of 3  2 ms    1 ms  3 ms",
			`v       b\x1b[31m  1       7 ms    7 ms  7 ms`, "cnsbench compare " + dir}},
		{[]string{"show", dir, "--output", "csv"}, []string{"p,response,unit,n,missing,median,min,max,mean,sd\n",
			"a,v,ms,2,1,2,1,3,2,1.4142135623730951\n"}},
		{[]string{"show", means}, []string{"metric  p  n  mean  sd\nm       a  –  10    2\n"}},
	} {
		code, out, errs := cnsbench(t, "", tt.args...)
		if code != exitOK || errs != "" || strings.Contains(out, "\x1b") {
			t.Errorf("%v: exit %d, %s\n%s", tt.args, code, errs, out)
		}
		for _, text := range tt.says {
			if !strings.Contains(strings.ReplaceAll(out, "\n", " "), strings.ReplaceAll(text, "\n", " ")) {
				t.Errorf("%v: no %q in\n%s", tt.args, text, out)
			}
		}
	}
	_, out, errs := cnsbench(t, "", "show", dir, "--output", "json")
	var got struct {
		Importer string
		Imported bool
		Complete bool
		Counts   struct{ Rows int }
		Rows     []struct {
			Levels []string
			Median *float64
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	if got.Importer != "csv" || !got.Imported || !got.Complete || got.Counts.Rows != 4 || len(got.Rows) != 2 ||
		*got.Rows[0].Median != 2 {
		t.Errorf("%s", out)
	}
}

// TestImportedRefused: what needs trials says that an imported study has none, and what reads it; nothing is written.
func TestImportedRefused(t *testing.T) {
	t.Parallel()
	dir := importText(t, valueHeader+values("a", 100, 8))
	prices := filepath.Join(dir, "prices.yaml")
	for _, args := range [][]string{
		{"study", "add-occasion", dir}, {"study", "merge", "a=" + dir, "b=" + dir, "--out", filepath.Join(dir, "out")},
		{"study", "schedule", dir, "--at", "daily 22:00"}, {"study", "run", "x.yaml", "--out", dir},
		{"study", "schedule", "x.yaml", "--study", dir, "--at", "daily 22:00"},
		{"export", dir, "--format", "csv"}, {"verify", dir}, {"cleanup", dir}, {"reproduce", dir},
		{"object", "cleanup", dir},
	} {
		code, out, errs := cnsbench(t, "", args...)
		if code != exitUsage || out != "" || !strings.Contains(errs, dir+" is an imported study") ||
			!strings.Contains(errs, "cnsbench compare "+dir) {
			t.Errorf("%v: exit %d, %s%s", args, code, out, errs)
		}
	}
	for says, args := range map[string][]string{
		"compare has what its trials cost": {"show", dir, "--prices", prices},
		"name one of its trials":           {"show", "--events", dir},
	} {
		if code, _, errs := cnsbench(t, "", args...); code != exitUsage || !strings.Contains(errs, says) {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
	}
}
