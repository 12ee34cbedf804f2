package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/study"
)

// editJSON changes a JSON file; numbers keep their digits.
func editJSON(t *testing.T, name string, edit func(map[string]any)) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]any
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&content); err != nil {
		t.Fatal(err)
	}
	edit(content)
	if text, err = json.Marshal(content); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// runsOf numbers the runs of the tests' bundles.
var runsOf = func() func() string {
	next := make(chan int, 1)
	next <- 0
	return func() string {
		n := <-next + 1
		next <- n
		return fmt.Sprintf("%08x", n)
	}
}()

// copyRun copies a bundle as one of another run, and changes its run.json.
func copyRun(t *testing.T, from, to string, edit func(run map[string]any)) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	editJSON(t, filepath.Join(to, runFile), func(run map[string]any) {
		run["runID"] = runsOf()
		if edit != nil {
			edit(run)
		}
	})
}

// studyOf makes a study of two cells, parallelism 1 and 2, with blocks trials of each, from the bundles of a kept one.
func studyOf(t *testing.T, blocks int, edit func(parallelism int, run map[string]any)) string {
	t.Helper()
	dir, kept := filepath.Join(t.TempDir(), "study"), filepath.Join(keptRuns, "study")
	var trials []any
	for block := 1; block <= blocks; block++ {
		for cell, name := range []string{"1_parallelism=1_r1", "2_parallelism=2_r1"} {
			own := fmt.Sprintf("%d_parallelism=%d_r%d", len(trials)+1, cell+1, block)
			trials = append(trials, map[string]any{"name": own, "cell": cell, "repetition": block, "occasion": 1,
				"block": block, "set": []any{}})
			copyRun(t, filepath.Join(kept, name), filepath.Join(dir, own), func(run map[string]any) {
				if edit != nil {
					edit(cell+1, run)
				}
			})
		}
	}
	text, err := os.ReadFile(filepath.Join(kept, studyFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, studyFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
	editJSON(t, filepath.Join(dir, studyFile), func(design map[string]any) {
		design["trials"], design["blocks"], design["plannedOccasions"] = trials, blocks, 1
		design["occasions"] = []any{map[string]any{"number": 1, "begun": "2026-11-20T10:00:00Z"}}
	})
	return dir
}

// otherRuns makes the bundles of a copied study those of other runs.
func otherRuns(t *testing.T, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*", runFile))
	if err != nil || len(names) == 0 {
		t.Fatalf("no runs in %s: %v", dir, err)
	}
	for _, name := range names {
		editJSON(t, name, func(run map[string]any) { run["runID"] = runsOf() })
	}
}

// setSize sets the size of the volumes that a kept Benchmark creates.
func setSize(run map[string]any, size string) {
	action := run["spec"].(map[string]any)["spec"].(map[string]any)["actions"].([]any)[0].(map[string]any)
	action["createObjSpec"].(map[string]any)["volume"].(map[string]any)["size"] = size
}

// flagOf is a validity flag in run.json.
func flagOf(name, severity, evidence string) []any {
	return []any{map[string]any{"name": name, "severity": severity, "evidence": evidence}}
}

// folded is a text on one line, with single spaces.
func folded(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestFlagsOfTrials: compare prints the validity flags of the trials in each format. Invalid trials get no verdict, and
// --strict makes any of them an exit status.
func TestFlagsOfTrials(t *testing.T) {
	t.Parallel()
	invalid := studyOf(t, 6, func(parallelism int, run map[string]any) {
		if parallelism == 2 {
			run["validity"] = flagOf("failedOps", "invalid", "vol: of 10 ops 3 failed")
		}
	})
	weak := studyOf(t, 6, func(_ int, run map[string]any) {
		run["validity"] = flagOf("hostBusy", "warning", "this machine: busy")
	})
	for _, tt := range []struct {
		dir, output string
		says        []string
	}{
		{invalid, "text", []string{"no verdict; 6 of 6 trials of 2 are invalid (failedOps: vol: of 10 ops 3 failed)",
			"Invalid: failedOps of 2 in 6 of 6 trials (p50(vol), rate(vol)); the first: vol: of 10 ops 3 failed."}},
		{invalid, "json", []string{`"invalid": 6`, `"name": "failedOps"`, `"verdict": "none"`}},
		{invalid, "markdown", []string{"**none**", "Invalid: failedOps of 2 in 6 of 6 trials"}},
		{weak, "text", []string{"Doubtful: hostBusy (6 of 6 trials of 1, 6 of 6 trials of 2).",
			"! all: hostBusy in 6 of 6 trials", "(doubtful)"}},
		{weak, "json", []string{`"doubts": [ "hostBusy (6 of 6 trials of 1, 6 of 6 trials of 2)" ]`}},
		{weak, "markdown", []string{"<br>doubtful: hostBusy (6 of 6 trials of 1"}},
		{weak, "csv", []string{"hostBusy: hostBusy in 6 of 6 trials"}},
	} {
		code, out, errs := cnsbench(t, "", "compare", tt.dir, "--output", tt.output)
		for _, want := range tt.says {
			if code != exitOK || !strings.Contains(folded(out), want) {
				t.Errorf("%s: exit %d, no %q in\n%s%s", tt.output, code, want, out, errs)
			}
		}
		if code, _, errs := cnsbench(t, "", "compare", tt.dir, "--output", tt.output, "--strict"); code != exitInvalid {
			t.Errorf("--strict: exit %d, want %d: %s", code, exitInvalid, errs)
		}
	}
	if code, out, errs := cnsbench(t, "", "compare", studyOf(t, 6, nil), "--strict"); code != exitOK {
		t.Errorf("no flags: exit %d\n%s%s", code, out, errs)
	}
}

// TestUnfinishedStudy: trials that have not run are no failures; the figures are of those that ran.
func TestUnfinishedStudy(t *testing.T) {
	t.Parallel()
	dir := studyOf(t, 8, nil)
	for _, trial := range []string{"13_parallelism=1_r7", "15_parallelism=1_r8", "16_parallelism=2_r8"} {
		if err := os.RemoveAll(filepath.Join(dir, trial)); err != nil {
			t.Fatal(err)
		}
	}
	code, out, errs := cnsbench(t, "", "compare", dir)
	text := folded(out)
	if code != exitOK || !strings.Contains(text, "3 of 16 trials of the study in "+dir+
		" have not run: the study is unfinished") ||
		strings.Contains(text, "have no value") || strings.Contains(text, "failed") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	// One that failed is a trial, without a value.
	failure := filepath.Join(dir, "16_parallelism=2_r8")
	if err := os.MkdirAll(failure, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(failure, "failure.json"), []byte(`{"exitCode": 2, "error": "no space"}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs = cnsbench(t, "", "compare", dir); code != exitOK ||
		!strings.Contains(folded(out), "1 of 8 trials of 2 have no value") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// TestUnsteadyCell: a cell that was not steady before its occasion is flagged beside its verdicts.
func TestUnsteadyCell(t *testing.T) {
	t.Parallel()
	dir := studyOf(t, 6, nil)
	editJSON(t, filepath.Join(dir, studyFile), func(design map[string]any) {
		design["precondition"] = map[string]any{"rounds": 1, "response": "rate(vol)", "atMost": 1}
	})
	copyRun(t, filepath.Join(keptRuns, "study", "1_parallelism=1_r1"),
		filepath.Join(dir, "precondition", "o1_parallelism=1_w1"), nil)
	code, out, errs := cnsbench(t, "", "compare", dir, "--strict")
	for _, want := range []string{"Doubtful: notSteady (1).",
		"precondition, occasion 1: rate(vol) of parallelism=1 was not steady after 1 round"} {
		if code != exitInvalid || !strings.Contains(folded(out), want) {
			t.Errorf("exit %d, no %q in\n%s%s", code, want, out, errs)
		}
	}
}

// TestSameRun: a run that is given twice is no second trial.
func TestSameRun(t *testing.T) {
	t.Parallel()
	dir := studyOf(t, 2, nil)
	trials, err := filepath.Glob(filepath.Join(dir, "*_r*"))
	if err != nil || len(trials) != 4 {
		t.Fatal(trials, err)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(trials[0])); err != nil {
		t.Fatal(err)
	}
	table := importText(t, valueHeader+values("a", 100, 8))
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"a=" + trials[0], "a=" + trials[0], "b=" + trials[1]}, trials[0] + " is given twice"},
		{[]string{"a=" + trials[0], "b=" + copied}, trials[0] + " and " + copied + " are the same (run "},
		{[]string{dir, "--baseline", dir}, " is given twice: want each run once"},
		{[]string{table, "--baseline", table}, table + " is given twice"},
	} {
		code, out, errs := cnsbench(t, "", append([]string{"compare"}, tt.args...)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, tt.says) {
			t.Errorf("%q: exit %d, %q, want %q", tt.args, code, errs, tt.says)
		}
	}
}

// TestOtherWorkload: a baseline, bundles and a history of another workload get no verdict, unless the difference is
// declared; each difference is named. Another platform is named, too.
func TestOtherWorkload(t *testing.T) {
	t.Parallel()
	size := func(size string) func(int, map[string]any) {
		return func(_ int, run map[string]any) { setSize(run, size) }
	}
	before, now := studyOf(t, 6, size("64Mi")), studyOf(t, 6, size("1Gi"))
	same := studyOf(t, 6, func(_ int, run map[string]any) { setSize(run, "64Mi"); run["engine"] = "kubernetes" })
	const name = "spec.actions.vol.createObjSpec.volume.size"
	trial := func(dir string) string { return filepath.Join(dir, "1_parallelism=1_r1") }
	history := t.TempDir()
	for i := range 12 {
		copyRun(t, trial(before), filepath.Join(history, fmt.Sprintf("run-%02d", i)), func(run map[string]any) {
			if i > 5 {
				setSize(run, "1Gi")
			}
		})
	}
	for _, tt := range []struct {
		args      []string
		undecided bool
		says      string
	}{
		{[]string{now, "--baseline", before}, true, "workload: " + name + " differs: 64Mi (baseline), 1Gi (now)"},
		{[]string{now, "--baseline", before, "--across", name}, false, name + " differs, as declared (--across)"},
		{[]string{now, "--baseline", before, "--across", "all"}, false, name + " differs, as declared (--across)"},
		{[]string{same, "--baseline", before}, false, "platform differs: local (baseline), kubernetes (now)"},
		{[]string{"old=" + trial(before), "new=" + trial(now)}, true, name + " differs: 64Mi (old), 1Gi (new)"},
		{[]string{"--history", history}, false, name + " differs: 64Mi (run-00, run-01 and 4 more), 1Gi (run-06, run-07"},
	} {
		code, out, errs := cnsbench(t, "", append([]string{"compare"}, tt.args...)...)
		text := folded(out)
		if code != exitOK || !strings.Contains(text, tt.says) || strings.Contains(text, "the workloads differ ("+name) !=
			tt.undecided || tt.undecided && !strings.Contains(text, "no verdict") {
			t.Errorf("%q: exit %d, want %q\n%s%s", tt.args, code, tt.says, out, errs)
		}
	}
	code, _, errs := cnsbench(t, "", "compare", now, "--baseline", before, "--across", "load.bs")
	if code != exitUsage || !strings.Contains(errs, `--across: "load.bs" does not differ; want all, or one of `+name) {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// ofDays are values of a level on days, n on each.
func ofDays(from, days, n int) string {
	var b strings.Builder
	b.WriteString("p,v,u,day\n")
	for day := range days {
		for i := range n {
			fmt.Fprintf(&b, "a,%d,IOPS,day-%d\n", from+i, from+day)
		}
	}
	return b.String()
}

// TestGate: --fail-on judges studies of few occasions, and never passes because there was nothing to judge.
func TestGate(t *testing.T) {
	t.Parallel()
	days := func(from, days, n int) string { return importText(t, ofDays(from, days, n), "--occasion", "day") }
	fails := studyOf(t, 6, func(parallelism int, run map[string]any) {
		if parallelism == 2 {
			run["validity"] = flagOf("failedOps", "invalid", "vol: of 10 ops 10 failed")
		}
	})
	whole, part := studyOf(t, 4, nil), studyOf(t, 4, nil)
	trials, err := filepath.Glob(filepath.Join(part, "*_parallelism=2_r*"))
	if err != nil || len(trials) != 4 {
		t.Fatal(trials, err)
	}
	for _, trial := range trials {
		if err := os.RemoveAll(trial); err != nil {
			t.Fatal(err)
		}
	}
	one := func(dir string) string { return filepath.Join(dir, "1_parallelism=1_r1") }
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{days(50, 1, 8), "--baseline", days(100, 1, 8)}, exitVerdict, "1 comparison with the verdict worse"},
		{[]string{days(50, 2, 4), "--baseline", days(100, 2, 4)}, exitVerdict,
			"--fail-on judges the answer for these occasions in 1 comparison"},
		{[]string{days(100, 1, 8), "--baseline", days(101, 1, 8)}, exitOK, ""},
		{[]string{fails}, exitUnjudged, "p50(vol): 2 has no value in 6 trials, 1 has some"},
		{[]string{fails, "--baseline", whole}, exitUnjudged,
			"p50(vol), parallelism 2: now has no value in 6 trials, baseline has some"},
		{[]string{part, "--baseline", whole}, exitUnjudged,
			"p50(vol), parallelism 2: now has no value, baseline has some"},
		{[]string{"old=" + one(whole), "new=" + one(part)}, exitUnjudged, "none of 2 comparisons has a verdict"},
		{[]string{part}, exitUnjudged, "there is nothing to compare"},
		{[]string{whole, "--baseline", studyOf(t, 4, nil)}, exitOK, ""},
	} {
		code, out, errs := cnsbench(t, "", append([]string{"compare", "--fail-on", "worse"}, tt.args...)...)
		if code != tt.code || !strings.Contains(errs, tt.says) || out == "" {
			t.Errorf("%q: exit %d, want %d and %q: %s\n%s", tt.args, code, tt.code, tt.says, errs, out)
		}
	}
}

// TestInvalidStudy: status and the end of study run count invalid trials. The exit status is that of run: 4 with
// --strict, also for trials that ran without it.
func TestInvalidStudy(t *testing.T) {
	t.Parallel()
	dir := studyOf(t, 6, func(parallelism int, run map[string]any) {
		if parallelism == 2 {
			run["validity"] = flagOf("failedOps", "invalid", "vol: of 10 ops 10 failed")
		}
	})
	const says = "12 of 12 trials done, 6 of them invalid: failedOps in 6 (the first: vol: of 10 ops 10 failed)"
	code, out, errs := cnsbench(t, "", "show", "--status", dir)
	if code != exitOK || !strings.HasPrefix(out, "kept: "+says) {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, _ = cnsbench(t, "", "show", "--status", dir, "--output", "json"); code != exitOK ||
		!strings.Contains(folded(out), `"invalid": { "trials": 6, "flags": [ { "name": "failedOps", "trials": 6,`) {
		t.Errorf("exit %d\n%s", code, out)
	}
	for strict, want := range map[bool]int{false: exitOK, true: exitInvalid} {
		d, err := study.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		var out, errs strings.Builder
		f := studyFlags{}
		f.run.Strict = strict
		err = f.conclude(&streams{in: strings.NewReader(""), out: &out, err: &errs}, d, make([]int, 12))
		if codeOf(err) != want || !strings.Contains(errs.String(), "warning: "+says) {
			t.Errorf("--strict=%v: %v\n%s", strict, err, &errs)
		}
	}
}

// searchOf makes a search of one step from a kept run.
func searchOf(t *testing.T, condition string) string {
	t.Helper()
	dir := studyOf(t, 1, nil)
	editJSON(t, filepath.Join(dir, studyFile), func(design map[string]any) {
		design["search"] = map[string]any{"action": "vol", "rate": "loop", "schedule": "constantRateSpec",
			"condition": condition, "from": 10, "least": 1, "most": 100, "resolution": 0.1, "windowNs": 1000000000, "needs": 1}
	})
	return dir
}

// TestSearchOrigin: a search has the runs of its steps and its condition, not the searched rate.
func TestSearchOrigin(t *testing.T) {
	t.Parallel()
	one, other := searchOf(t, "p99(vol) < 1s"), searchOf(t, "p99(vol) < 2s")
	var list []origin
	for label, dir := range map[string]string{"a": one, "b": other} {
		o, err := searchOrigin(label, dir)
		if err != nil || len(o.runs) != 2 {
			t.Fatal(o, err)
		}
		list = append(list, o)
	}
	if err := distinctOrigins(list); err != nil {
		t.Error(err)
	}
	if notes, reason, err := unlike(list, nil); err != nil || len(notes) != 1 ||
		!strings.Contains(reason, "the workloads differ (find-max.condition)") {
		t.Error(notes, reason, err)
	}
	if err := distinctOrigins([]origin{list[0], list[0]}); err == nil || !strings.Contains(err.Error(), "is given twice") {
		t.Error(err)
	}
}
