package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/trial"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/observation"
)

// Data of the tests.
const (
	importedExamples = "../../examples/imported"
	keptRuns         = "../../test/e2e/testdata/kept-2026-11"
)

// cnsbench runs the command line, and returns its exit code and what it printed.
func cnsbench(t *testing.T, in string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	code = Main(args, strings.NewReader(in), &o, &e)
	return code, o.String(), e.String()
}

// importText imports a CSV text with the columns of the tests.
func importText(t *testing.T, text string, more ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "study")
	args := append([]string{"import", "csv", "-", "--out", dir, "--factor", "p", "--unit", "u"}, more...)
	if !slices.Contains(more, "--value") {
		args = append(args, "--value", "v")
	}
	if code, _, errs := cnsbench(t, text, args...); code != 0 {
		t.Fatal(errs)
	}
	return dir
}

func importAzure(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "azure")
	code, out, errs := cnsbench(t, "", "import", "csv", importedExamples+"/dbench-azure-2023.csv", "--out", dir,
		"--factor", "provider", "--block", "occasion", "--repetition", "repetition", "--metric", "metric", "--unit", "unit",
		"--value", "value")
	if code != 0 || !strings.Contains(out, "imported 800 rows: 10 metrics, 4 levels of provider") {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	return dir
}

// TestCompareJSON: scripts rely on these names.
func TestCompareJSON(t *testing.T) {
	t.Parallel()
	code, out, errs := cnsbench(t, "", "compare", importAzure(t), "--factor", "provider", "--output", "json")
	if code != 0 {
		t.Fatal(errs)
	}
	var r struct {
		Cells       []map[string]any `json:"cells"`
		Comparisons []map[string]any `json:"comparisons"`
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Cells) != 40 || len(r.Comparisons) != 60 {
		t.Fatalf("%d cells, %d comparisons", len(r.Cells), len(r.Comparisons))
	}
	for _, name := range []string{"metric", "level", "unit", "n", "mean", "sd", "cv", "median"} {
		if r.Cells[0][name] == nil {
			t.Errorf("a cell has no %s", name)
		}
	}
	for _, name := range []string{"metric", "a", "b", "n", "ratio", "low", "high", "p", "verdict"} {
		if r.Comparisons[0][name] == nil {
			t.Errorf("a comparison has no %s", name)
		}
	}
	for _, c := range r.Cells {
		if c["metric"] == "Random read IOPS" && c["level"] == "Portworx" && c["mean"] != 35745.0 {
			t.Errorf("mean %v", c["mean"])
		}
	}
}

// TestCompareOutputs checks the other formats.
func TestCompareOutputs(t *testing.T) {
	t.Parallel()
	dir := importAzure(t)
	for output, says := range map[string][]string{
		"text": {"In general (unit: occasion), 60 comparisons: all inconclusive", "needs 5 to",
			"not over the 10 such families: if no level differed, a false better, worse or different " +
				"would be expected in up to 0.5 of",
			"OpenEBS: the first run differs from the others in 7 of 10 metrics", "Random read IOPS (IOPS, higher is better)",
			"Portworx / Disk Storage", "35.7k"},
		"markdown": {"| metric | b / a |", "**inconclusive** in general<br>**better** for these 4 occasions"},
		"benchstat": {"Unit IOPS better=higher", "Unit us better=lower",
			"BenchmarkRandom_read_IOPS/provider=Portworx 1 26100 IOPS"},
	} {
		code, out, errs := cnsbench(t, "", "compare", dir, "--output", output)
		if code != 0 {
			t.Fatal(errs)
		}
		for _, want := range says {
			if !strings.Contains(folded(out), want) && !strings.Contains(out, want) {
				t.Errorf("%s has no %q:\n%.2000s", output, want, out)
			}
		}
		for _, number := range regexp.MustCompile(`\d+(\.\d+)?`).FindAllString(out, -1) {
			if len(strings.Trim(strings.Replace(number, ".", "", 1), "0")) > 4 && output != "benchstat" {
				t.Errorf("%s: %s has more than four significant digits", output, number)
			}
		}
	}
	_, out, _ := cnsbench(t, "", "compare", dir, "--output", "csv")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 1+40+2*60+2*10 { // cells, answers, overall tests
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// values makes rows of a level.
func values(level string, from, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s,%d,IOPS\n", level, from+i)
	}
	return b.String()
}

const valueHeader = "p,v,u\n"

// TestFailOn: a verdict that is not wanted has an exit status of its own; the answer is printed.
func TestFailOn(t *testing.T) {
	t.Parallel()
	dir := importText(t, valueHeader+values("old", 100, 8)+values("new", 50, 8))
	for _, tt := range []struct {
		failOn string
		code   int
	}{{"worse", exitVerdict}, {"inconclusive,worse", exitVerdict}, {"better", exitOK}} {
		code, out, errs := cnsbench(t, "", "compare", dir, "--fail-on", tt.failOn)
		if code != tt.code || !strings.Contains(out, "new against old, for this occasion: worse") {
			t.Errorf("--fail-on %s: exit %d, %s%s", tt.failOn, code, out, errs)
		}
	}
	unknown := importText(t, strings.ReplaceAll(valueHeader+values("old", 100, 8)+values("new", 50, 8), "IOPS", "foo"))
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{"worse", exitUnjudged, "--fail-on cannot judge: none of 1 comparison has a verdict but different"},
		{"different", exitVerdict, "1 comparison with the verdict different"},
		{"worse --direction higher", exitVerdict, "1 comparison with the verdict worse"},
		{"worse --direction lower", exitOK, ""},
	} {
		code, _, errs := cnsbench(t, "", append([]string{"compare", unknown, "--fail-on"}, strings.Fields(tt.args)...)...)
		if code != tt.code || !strings.Contains(errs, tt.says) {
			t.Errorf("unknown direction, --fail-on %s: exit %d, %s", tt.args, code, errs)
		}
	}
	if code, _, errs := cnsbench(t, "", "compare", dir, "--fail-on", "wrose"); code != exitUsage ||
		!strings.Contains(errs, `invalid --fail-on "wrose"`) {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// TestStrict: a flag has an exit status where that is asked for.
func TestStrict(t *testing.T) {
	t.Parallel()
	dir := importText(t, valueHeader+values("old", 100, 8)+values("new", 100, 8))
	for limit, code := range map[string]int{"p=old,max=50IOPS": exitInvalid, "p=old,max=500IOPS": exitOK} {
		if got, out, errs := cnsbench(t, "", "compare", dir, "--strict", "--limit", limit); got != code {
			t.Errorf("%s: exit %d, want %d\n%s%s", limit, got, code, out, errs)
		}
	}
}

func TestBaseline(t *testing.T) {
	t.Parallel()
	old := importText(t, valueHeader+values("a", 100, 8))
	now := importText(t, valueHeader+values("a", 60, 8))
	code, out, errs := cnsbench(t, "", "compare", now, "--baseline", old, "--fail-on", "worse")
	if code != exitVerdict || !strings.Contains(out, "now against baseline, for this occasion: worse") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	units := importText(t, strings.ReplaceAll(valueHeader+values("a", 60, 8), "IOPS", "ms"))
	if code, _, errs := cnsbench(t, "", "compare", units, "--baseline", old); code != exitUsage ||
		!strings.Contains(errs, `v has the unit "IOPS" in baseline and "ms" in now`) {
		t.Errorf("exit %d: %s", code, errs)
	}
	other := importText(t, "p,w,u\na,1,IOPS\n", "--value", "w")
	if code, _, errs := cnsbench(t, "", "compare", other, "--baseline", old); code != exitUsage ||
		!strings.Contains(errs, "no metric in common: they measure different workloads") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// TestHistory finds a shift after the seventh run, and none where there is none.
func TestHistory(t *testing.T) {
	t.Parallel()
	for _, shift := range []int{0, 40} {
		dir := t.TempDir()
		for i := range 14 {
			from := 100 + i%3
			if i >= 7 {
				from -= shift
			}
			args := []string{"import", "csv", "-", "--out", filepath.Join(dir, fmt.Sprintf("run-%02d", i+1)), "--factor", "p",
				"--value", "v", "--unit", "u"}
			if code, _, errs := cnsbench(t, valueHeader+values("a", from, 3+i), args...); code != 0 {
				t.Fatal(errs)
			}
		}
		code, out, errs := cnsbench(t, "", "compare", "--history", dir, "--fail-on", "worse")
		found := strings.Contains(out, "worse from run-08 on")
		if found != (shift > 0) || (code == exitVerdict) != found {
			t.Errorf("shift %d: exit %d\n%s%s", shift, code, out, errs)
		}
	}
}

// TestHistoryOutputs: each output of a history has its change, the runs around it, and its figures.
func TestHistoryOutputs(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("p,day,v,m,u\n")
	for day := range 18 {
		for i := range 2 {
			v := 100 + (day+i)%3 + day/9*50
			if day == 2 {
				v = 400 // an outlier alone is no change
			}
			fmt.Fprintf(&b, "a,day-%02d,%d,=up|,ms\na,day-%02d,%d,level,ms\n", day+1, v, day+1, 70+(day+i)%2)
		}
	}
	dir := importText(t, b.String(), "--occasion", "day", "--metric", "m")
	for output, want := range map[string][]string{
		"text": {"worse from day-10 on", "E-divisive"},
		"json": {`"run": "day-10"`, `"outliers": [`},
		"csv": {"\nrun,'=up|,p=a,ms,day-03,,,,,,400,", ",outlier,", "\nchange,'=up|,p=a,ms,day-09,day-10,,,,,,,,,,,1.",
			",worse,,between day-", "\nrun,level,p=a,ms,day-18,,,,,,70.5,"},
		"markdown": {`| =up\| (ms), p a | day-10 | day-`, " | **worse** | 101 ms | 151 ms | ×1.",
			"| day-03 | 400 ms (outlier) |", "| day-10 | 150 ms (changed) |",
			"| level (ms), p a | 18 | 70.5 ms | 70.5 ms | 0 |  |", "Search: E-divisive, alpha 0.03"},
	} {
		code, out, errs := cnsbench(t, "", "compare", "--history", dir, "--output", output)
		for _, w := range want {
			if code != 0 || !strings.Contains(out, w) {
				t.Errorf("%s: exit %d, want %q\n%s%s", output, code, w, out, errs)
			}
		}
		if strings.Contains(out, "Cells") || strings.Contains(out, "Adjusted: p by") {
			t.Errorf("%s has tables of comparisons:\n%s", output, out)
		}
	}
}

// TestHistoryOfStudy: the occasions of one study are its runs.
func TestHistoryOfStudy(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("p,day,v,u\n")
	for day := range 12 {
		for i := range 2 {
			fmt.Fprintf(&b, "a,day-%02d,%d,ms\n", day+1, 100+(day+i)%3+day/6*50)
		}
	}
	dir := importText(t, b.String(), "--occasion", "day")
	code, out, errs := cnsbench(t, "", "compare", "--history", dir)
	if code != 0 || !strings.Contains(out, "worse from day-07 on") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// TestCompareKept reads a study and bundles of an earlier version. Two single runs have no verdict; the latencies
// within them are compared.
func TestCompareKept(t *testing.T) {
	t.Parallel()
	study := filepath.Join(keptRuns, "study")
	code, out, errs := cnsbench(t, "", "compare", study)
	if code != 0 || !strings.Contains(out, "no verdict, ×") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	trials, err := filepath.Glob(filepath.Join(study, "*_r*"))
	if err != nil || len(trials) < 2 {
		t.Fatalf("%v, %v", trials, err)
	}
	code, out, errs = cnsbench(t, "", "compare", "old="+trials[0], "new="+trials[1])
	if code != 0 || !strings.Contains(out, "new against old") || !strings.Contains(out, "no verdict") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	code, out, errs = cnsbench(t, "", "compare", filepath.Join(keptRuns, "bundle"))
	if code != 0 || !strings.Contains(out, "Nothing to compare: bundle has one level, bundle.") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}

// TestCompareBadInput: one clear message each.
func TestCompareBadInput(t *testing.T) {
	t.Parallel()
	dir := importText(t, valueHeader+values("a", 1, 3)+values("b", 1, 3))
	file, blank := filepath.Join(t.TempDir(), "file.csv"), filepath.Join(t.TempDir(), "blank")
	for name, text := range map[string]string{file: valueHeader, blank: "\n \r\n\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ args, says string }{
		{"compare", "requires at least 1 arg"},
		{"compare nowhere", "nowhere"},
		{"compare " + file, "import it first"},
		{"compare " + t.TempDir(), "neither a study, an imported study, nor a bundle"},
		{"compare " + dir + " " + dir, "is a study, not a bundle: compare it with another by compare DIR --baseline EARLIER"},
		{"compare " + t.TempDir() + " " + t.TempDir(), "is no bundle: it has no run.json"},
		{"compare " + dir + " --factor x", `no factor "x": want --factor with one of p`},
		{"compare " + dir + " --margin x", `invalid --margin "x"`},
		{"compare " + dir + " --margin 0", `invalid --margin "0"`},
		{"compare " + dir + " --output xml", `invalid --output "xml": want text, json, csv, markdown or benchstat`},
		{"compare " + dir + " --level day", `invalid --level "day": want occasion or repetition`},
		{"compare " + dir + " --direction up", `invalid --direction "up"`},
		{"compare " + dir + " --aa a", `invalid --aa "a"`},
		{"compare " + dir + " --limit x=1", "invalid --limit"},
		{"compare " + dir + " --block-size 4k", `invalid size "4k"`},
		{"compare " + dir + " --against c", `p has no level "c": want one of a, b`},
		{"compare --history " + dir, "has neither occasions nor blocks: there is no history"},
		{"compare --history " + t.TempDir(), "has no bundles and no studies"},
		{"compare --history " + dir + " --baseline " + dir, "exclude each other"},
		{"import csv " + file + " --factor p --value v", "want --out DIR"},
		{"import csv " + file + " --out x --factor p --value v", "no values"},
		{"import csv nowhere.csv --out x --factor p --value v", "nowhere.csv"},
		{"import " + blank + " --out x", blank + ": it has no text: all its lines are empty"},
		{"import dbench " + file + " --out x", "has no figures: want the summary that dbench prints"},
	} {
		code, out, errs := cnsbench(t, "", strings.Fields(tt.args)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, tt.says) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit %d, %q, want %q%s", tt.args, code, errs, tt.says, out)
		}
	}
}

// TestImportTool imports two files of dbench with a level each.
func TestImportTool(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "study")
	const data = "../workload/parser/testdata/corpus/dbench/"
	code, out, errs := cnsbench(t, "", "import", "dbench", "disk="+data+"dbench.txt", data+"dbench-portworx.txt",
		"--out", dir)
	if code != 0 || !strings.Contains(out, "imported 20 rows of dbench: 10 metrics, 2 levels of provider") {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	code, out, _ = cnsbench(t, "", "compare", dir)
	if code != 0 || !strings.Contains(out, "dbench-portworx / disk") {
		t.Error(out)
	}
}

// TestControlCharacters: names of a file do not reach the terminal as they are.
func TestControlCharacters(t *testing.T) {
	t.Parallel()
	rows := strings.ReplaceAll(values("a\x1b[31m", 1, 6)+values("b", 1, 6), "\n", ",m\x1b[31m,s\x1b[31m\n")
	dir := importText(t, "p,v,u,m,s\n"+rows, "--metric", "m", "--factor", "s")
	for _, output := range []string{"text", "json", "csv", "markdown", "benchstat"} {
		_, out, _ := cnsbench(t, "", "compare", dir, "--factor", "p", "--output", output)
		if out == "" || strings.Contains(out, "\x1b") {
			t.Errorf("%s: %q", output, out)
		}
	}
}

// TestComparedFactor: --factor precedes the factor that a study names; two versions are always compared as such.
func TestComparedFactor(t *testing.T) {
	for _, tt := range []struct {
		flag string
		in   compared
		want string
	}{
		{"", compared{}, ""},
		{"", compared{preferred: "storageClass"}, "storageClass"},
		{"bs", compared{preferred: "storageClass"}, "bs"},
		{"bs", compared{factor: versionFactor, preferred: "storageClass"}, versionFactor},
	} {
		f := compareFlags{factor: tt.flag, level: "occasion"}
		tt.in.table = &observation.Table{}
		if o, err := f.options(&tt.in); err != nil || o.Factor != tt.want {
			t.Errorf("--factor %q, %+v: compares %q, want %q; %v", tt.flag, tt.in, o.Factor, tt.want, err)
		}
	}
}

// TestIncompleteRun: the figures of a run that did not complete are no baseline, and a history goes without them.
func TestIncompleteRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"run-1", "run-2"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(keptRuns, "bundle"))); err != nil {
			t.Fatal(err)
		}
	}
	second := filepath.Join(dir, "run-2")
	if err := os.Remove(filepath.Join(second, "manifest.json")); err != nil {
		t.Fatal(err)
	}
	const says = "did not complete: its figures are no trial"
	code, out, errs := cnsbench(t, "", "compare", filepath.Join(dir, "run-1"), "--baseline", second)
	if code == exitOK || !strings.Contains(errs, says) {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	code, out, errs = cnsbench(t, "", "compare", "--history", dir)
	if code != exitOK || !strings.Contains(strings.Join(strings.Fields(out), " "), says+"; it is left out") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}

// TestBetters: benchstat has one direction for a unit, so that metrics of opposite directions have none.
func TestBetters(t *testing.T) {
	t.Parallel()
	table := &observation.Table{Metrics: []observation.Metric{{Name: "rate", Unit: "1/s"}, {Name: "errors", Unit: "1/s"},
		{Name: "latency", Unit: "ms"}, {Name: "apples", Unit: "kg"}}}
	got := betters(table, compare.Options{})
	if len(got) != 1 || got["ms"] != "lower" {
		t.Errorf("%v", got)
	}
}

// TestBaselineOfStudy keeps the margin and the direction that the study declares.
func TestBaselineOfStudy(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "study")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(keptRuns, "study"))); err != nil {
		t.Fatal(err)
	}
	otherRuns(t, dir)
	name := filepath.Join(dir, studyFile)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	declared := strings.Replace(string(text), `"responses":`,
		`"metrics": [{"response": "p50(vol)", "margin": 0.2, "direction": "higher"}], "responses":`, 1)
	if err := os.WriteFile(name, []byte(declared), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := cnsbench(t, "", "compare", dir, "--baseline", filepath.Join(keptRuns, "study"))
	if code != exitOK || !strings.Contains(out, "margin 20 % (declared by the study)") ||
		!strings.Contains(out, "p50(vol), parallelism 1 (ns, higher is better)") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// TestMisspeltMetric: a metric about an action that the Benchmark does not have is found before anything runs.
func TestMisspeltMetric(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "study.yaml")
	text, err := os.ReadFile("../../examples/study.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "p50(volumes)", "p50(nothere)", 1)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	for _, args := range [][]string{{"validate", file}, {"study", "run", file, "--dry-run", "--out", out},
		{"study", "run", file, "--out", out}} {
		code, _, errs := cnsbench(t, "", args...)
		if code != exitUsage || !strings.Contains(errs, `action "nothere" not found; there are `) {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a directory was created")
	}
}

// TestReportImported: the page of an imported study has its box plots, with the published CVs and those of the mean.
func TestReportImported(t *testing.T) {
	t.Parallel()
	dir := importAzure(t)
	code, out, errs := cnsbench(t, "", "report", dir)
	if code != 0 {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(page), "Box plots of "); n < 10 {
		t.Errorf("%d box plots", n)
	}
	for _, want := range []string{`23.03 %</td><td class="n">20.08 %`, `10.95 %</td><td class="n">10.52 %`} {
		if !strings.Contains(string(page), want) {
			t.Errorf("%q is not in the page", want)
		}
	}
}

// TestImportedFlags: fio that was asked not to measure latencies is flagged, by the import and by each comparison.
func TestImportedFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sample, err := os.ReadFile("../workload/parser/testdata/corpus/fio/gtod.json")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, global, job string) string {
		path := filepath.Join(dir, name)
		text := strings.Replace(string(sample), `"gtod_reduce" : "1"`, strings.TrimPrefix(global+`,"direct":"1"`, ","), 1)
		text = strings.Replace(text, `"job options" : {`, `"job options" : {`+job+map[bool]string{true: ","}[job != ""], 1)
		text = strings.Replace(text, `"jobname" : "job"`, `"jobname" : "j"`, 1)
		text = strings.Replace(text, `"timestamp" : `, fmt.Sprintf(`"timestamp" : %d`, name[0]), 1)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for i, tt := range []struct {
		global, job string
		flagged     bool
	}{
		{`"gtod_reduce": "1"`, ``, true},
		{``, `"gtod_reduce": ""`, true},
		{``, ``, false},
	} {
		a, b := write("a.json", tt.global, tt.job), write("b.json", "", "")
		out := filepath.Join(dir, fmt.Sprint("imported", i))
		code, text, errs := cnsbench(t, "", "import", "fio", "a="+a, "b="+b, "--out", out)
		if code != 0 || strings.Contains(text, "gtod_reduce=1: no latency was measured") != tt.flagged {
			t.Fatalf("%v: import: exit %d, %s%s", tt, code, text, errs)
		}
		code, text, _ = cnsbench(t, "", "compare", out, "--strict")
		if strings.Contains(text, "gtodReduce, a: a.json: gtod_reduce=1") != tt.flagged || (code == exitInvalid) != tt.flagged {
			t.Errorf("%v: compare --strict: exit %d, %s", tt, code, text)
		}
	}
}

// TestQuantilesOfTrials: studies and labelled bundles compare quantiles trial by trial, in each format.
func TestQuantilesOfTrials(t *testing.T) {
	t.Parallel()
	b := observation.NewBuilder([]string{bundleFactor}, "", "")
	var quantiles trial.Quantiles
	trials, err := filepath.Glob(filepath.Join(keptRuns, "study", "*_r*"))
	if err != nil || len(trials) == 0 {
		t.Fatalf("%v, %v", trials, err)
	}
	for i := range 10 {
		open, err := bundle.Open(trials[i%len(trials)])
		if err != nil {
			t.Fatal(err)
		}
		d, err := dataset.Read(open)
		if err != nil {
			t.Fatal(err)
		}
		if err := quantiles.Add(observation.Row{Levels: []string{[]string{"a", "b"}[i%2]}}, d); err != nil {
			t.Fatal(err)
		}
	}
	q := quantiles.Fill(b)
	r, err := compare.Run(q.Table, compare.Options{Quantiles: q})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Distributions) == 0 || r.Distributions[0].Quantiles[0].N != 5 || r.Distributions[0].Quantiles[0].Q != 0.5 {
		t.Fatalf("%+v", r.Distributions)
	}
	r.Distributions = append(r.Distributions, compare.Distribution{Metric: "m", A: "a", B: "b", StepsA: 2, StepsB: 2,
		Quantiles: []compare.QuantileRatio{{Q: 0.9}}})
	d := &r.Distributions[0]
	times := strings.NewReplacer("[", `\[`, "]", `\]`).Replace(d.Quantiles[0].Times())
	for format, says := range map[string][]string{
		"text": {"Quantiles of trials", "b / a", "Within the two runs", fmt.Sprintf("×%.3g", *d.Quantiles[0].Ratio)},
		"markdown": {"Quantiles of trials:", "| b / a | p50 | " + times, "Quantiles within the two runs:",
			"| m | b / a | p90 | – |"},
		"csv": {"\nquantile," + d.Metric, ",0.5,,,,\n", "\nquantile,m,,,a,b,,", ",0.9,,,,\n"},
	} {
		var out strings.Builder
		if err := (&compareFlags{output: format}).write(&out, r); err != nil {
			t.Fatal(err)
		}
		for _, want := range says {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s has no %q:\n%s", format, want, out.String())
			}
		}
	}
}

// TestDifferentWorkloads: levels that ran with other block sizes are named before any verdict.
func TestDifferentWorkloads(t *testing.T) {
	t.Parallel()
	const corpus = "../workload/parser/testdata/corpus/fio/"
	text, err := os.ReadFile(corpus + "plain.json")
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(other, []byte(strings.Replace(string(text), `"bs" : "4k"`, `"bs" : "64k"`, 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "study")
	if code, _, errs := cnsbench(t, "", "import", "a="+corpus+"plain.json", "b="+other, "--out", dir); code != 0 {
		t.Fatal(errs)
	}
	_, out, _ := cnsbench(t, "", "compare", dir)
	if first, _, _ := strings.Cut(out, "\n"); !strings.Contains(first,
		"the levels ran different workloads: a bs=4096, b") {
		t.Errorf("the first line is %q", first)
	}
}
