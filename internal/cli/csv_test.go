package cli

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/catalog"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestCSV: each table that commands print has a CSV with a header and the figures of its JSON.
func TestCSV(t *testing.T) {
	t.Parallel()
	study := filepath.Join(keptRuns, "study")
	example := func(name string) string { return filepath.Join("..", "..", "examples", filepath.FromSlash(name)) }
	trace := example("traces/churn.csv.gz")
	demo, _ := analysistest.Demo(t)
	one, later := demo.Dir, filepath.Join(t.TempDir(), "later")
	copyRun(t, one, later, func(run map[string]any) { run["seed"] = 77 })
	for _, tt := range []struct {
		args []string
		rows int
		head []string
		has  []string
	}{
		{[]string{"list", keptRuns}, 4, []string{"path", "run_id", "duration_ns", "objectives_pass"},
			[]string{"ff425f55", "complete", "bundleOnStorageUnderTest"}},
		{[]string{"show", filepath.Join(keptRuns, "bundle")}, 0, []string{"run_id", "metric", "value"},
			[]string{"ff425f55", "response", "p50"}},
		{[]string{"show", study}, 4, []string{"parallelism", "response", "median"},
			[]string{"p50(vol)", "rate(vol)"}},
		{[]string{"show", "--status", study}, 4, []string{"parallelism", "half_width", "needed"},
			[]string{"p50(vol)", "lower", "5 more blocks"}},
		{[]string{"workloads", "show"}, 0, []string{"kind", "name", "description"},
			[]string{"workload", "fio", "suite:dbench"}},
		{[]string{"workloads", "show", "fio"}, 0, []string{"variable", "default", "required", "type", "meaning"},
			[]string{"storageClass", "iodepth"}},
		{[]string{"show", "--op", "vol/0", filepath.Join(study, "1_parallelism=1_r1")}, 0, []string{"phase", "duration_ns"},
			[]string{"vol", "ok"}},
		{[]string{"trace", "stats", trace}, 0, []string{"of", "operation", "kind", "figure", "value", "unit"},
			[]string{"operation", "create", "gap_p50", "lifetime_median", "dependency"}},
		{[]string{"reproduce", one, "--with", later}, 1, []string{"kind", "name", "group", "then", "now"},
			[]string{"fact", "seed", "request", "77"}},
		{[]string{"verify", one}, 1, []string{"bundle", "ok", "files", "manifest_sha256"}, []string{one, "true"}},
		{[]string{"run", "--dry-run", example("null-poisson.yaml")}, 0, []string{"what", "n", "bytes"},
			[]string{"volumes", "operations", "volumes of a class", "null"}},
		{[]string{"object", "run", "--dry-run", example("object/files.xml")}, 0,
			[]string{"stage", "work", "n", "sent_bytes"}, []string{"requests", "init"}},
		{[]string{"study", "run", "--dry-run", example("study.yaml")}, 0, []string{"trial", "cell", "block", "set"},
			[]string{"1"}},
	} {
		code, out, errs := call(append(tt.args, "--output", "csv")...)
		rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
		if code != exitOK || err != nil {
			t.Errorf("%q: exit %d, %v, %s", tt.args, code, err, errs)
			continue
		}
		if tt.rows > 0 && len(rows) != tt.rows+1 || len(rows) < 2 {
			t.Errorf("%q: %d rows, want %d", tt.args, len(rows)-1, tt.rows)
		}
		for _, name := range tt.head {
			if !slices.Contains(rows[0], name) {
				t.Errorf("%q: no column %s in %q", tt.args, name, rows[0])
			}
		}
		for _, want := range tt.has {
			if !slices.ContainsFunc(rows, func(row []string) bool { return slices.Contains(row, want) }) &&
				!strings.Contains(out, want) {
				t.Errorf("%q: no cell %q in\n%s", tt.args, want, out)
			}
		}
	}
	code, out, errs := call("object", "run", "--dry-run", "--output", "json", example("object/files.xml"))
	var budget struct{ Works []workBudget }
	if err := json.Unmarshal([]byte(out), &budget); err != nil || code != exitOK || len(budget.Works) < 2 ||
		budget.Works[0].Requests == nil || budget.Works[0].Times != 1 {
		t.Errorf("exit %d, %v, %s%s", code, err, out, errs)
	}
	code, out, _ = call("workloads", "show", "--output", "json")
	var list []map[string]string
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != exitOK || len(list) < 20 ||
		list[0]["kind"] != "workload" || list[0]["description"] == "" {
		t.Errorf("exit %d, %v, %s", code, err, out)
	}
}

// TestDoctorCSV: the CSV has the findings of the JSON. The exit status is that of this machine.
func TestDoctorCSV(t *testing.T) {
	code, out, _ := call("doctor", "--output", "json")
	var want []finding
	if err := json.Unmarshal([]byte(out), &want); err != nil {
		t.Fatal(err)
	}
	also, out, errs := call("doctor", "--output", "csv")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || also != code || len(rows) != len(want)+1 {
		t.Fatalf("exit %d, want %d; %v; %d rows of %d findings\n%s%s", also, code, err, len(rows)-1, len(want), out, errs)
	}
	for i, f := range want {
		if got := rows[i+1][:3]; !slices.Equal(got, []string{f.What, strconv.FormatBool(f.OK),
			strconv.FormatBool(f.Needed)}) {
			t.Errorf("row %q of finding %+v", got, f)
		}
	}
}

// TestWorkloadsShowJSON: the JSON has what the text has, and says which variables are required.
func TestWorkloadsShowJSON(t *testing.T) {
	t.Parallel()
	code, out, errs := call("workloads", "show", "fio", "--output", "json")
	var got shownWorkload
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK {
		t.Fatalf("exit %d, %v, %s", code, err, errs)
	}
	_, text, _ := call("workloads", "show", "fio")
	required := 0
	for _, v := range got.Variables {
		if v.Default == nil {
			required++
		}
		if !strings.Contains(text, v.Name) || !strings.Contains(text, v.Meaning) || !strings.Contains(text, v.Type) {
			t.Errorf("the text does not have %+v", v)
		}
	}
	if want := strings.Count(text, "(required)"); required != want || len(got.Variables) < 5 || len(got.Parts) == 0 ||
		!strings.Contains(text, got.Description) {
		t.Errorf("%d required variables, want %d: %+v", required, want, got)
	}
	if len(got.Metrics) == 0 {
		t.Error("no metrics")
	}
	for _, m := range got.Metrics {
		if !strings.Contains(text, m.Name) || !strings.Contains(text, m.Meaning) {
			t.Errorf("the text does not have %+v", m)
		}
	}
	for _, p := range got.Parts {
		if !strings.Contains(text, strings.TrimRight(p.Text, "\n")) {
			t.Errorf("the text does not have part %s", p.Name)
		}
	}
}

// TestNarrowList: where the table of list does not fit the terminal, no line is longer than it, and all facts are there.
func TestNarrowList(t *testing.T) {
	t.Parallel()
	entries := []catalog.Entry{{Kind: catalog.KindBundle, Path: "results/first", Name: "quickstart", RunID: "ff425f55",
		Started: time.Date(2026, 11, 24, 11, 18, 44, 0, time.UTC), Engine: "local", State: "complete",
		Verdicts: map[bundle.Status]int{bundle.Pass: 1}, Flags: []string{"hostBusy", "bundleOnStorageUnderTest"}}}
	for _, width := range []int{0, 40, 80, 200} {
		var out strings.Builder
		if err := writeEntries(&out, entries, nil, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); width > 0 && n > width {
				t.Errorf("width %d: a line of %d:\n%s", width, n, out.String())
			}
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range []string{"results/first", "quickstart", "ff425f55", "local", "complete", "1 pass",
			"hostBusy,bundleOnStorageUnderTest"} {
			if !strings.Contains(text, want) {
				t.Errorf("width %d: no %q:\n%s", width, want, out.String())
			}
		}
		if head := strings.HasPrefix(text, "PATH"); head != (width == 0 || width == 200) {
			t.Errorf("width %d:\n%s", width, out.String())
		}
	}
}

// TestStudyMarkdown: the report of a study as Markdown has the cells of its table, and goes where --out says.
func TestStudyMarkdown(t *testing.T) {
	t.Parallel()
	study := filepath.Join(keptRuns, "study")
	code, out, errs := call("report", "--output", "markdown", "-o", "-", study)
	if code != exitOK {
		t.Fatalf("exit %d, %s", code, errs)
	}
	for _, want := range []string{"# kept (study)\n", "| parallelism | n | p50(vol) | rate(vol) |\n",
		"| 1 | 1 | 104 µs | 2615/s |\n", "## Trials: p50(vol)", "## What takes the time of vol", "CSI driver 365 µs (98 %)",
		"- At parallelism 1: 157k a minute"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	file := filepath.Join(t.TempDir(), "study.md")
	if code, said, _ := call("report", "--output", "markdown", "-o", file, study); code != exitOK ||
		said != file+"\n" {
		t.Errorf("exit %d, says %s", code, said)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != out {
		t.Errorf("%v, the file has\n%s", err, text)
	}
	page := importAzure(t)
	code, out, errs = call("report", "--output", "markdown", "-o", "-", page)
	if code != exitOK || !strings.Contains(out, "| provider | n | mean | sd |") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}
