package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/web"
)

// seriesOf makes twelve runs of one Benchmark, of another platform from the seventh on.
func seriesOf(t *testing.T) (dir string, runs []web.Labelled) {
	t.Helper()
	dir = t.TempDir()
	for i := range 12 {
		label := fmt.Sprintf("run-%02d", i)
		runs = append(runs, web.Labelled{Label: label, Dir: filepath.Join(dir, label)})
		copyRun(t, filepath.Join(keptRuns, "bundle"), runs[i].Dir, func(run map[string]any) {
			if i > 5 {
				run["engine"] = "kubernetes"
			}
		})
	}
	return dir, runs
}

// TestServedHistory: the web interface answers as compare --history does, for a folder and for chosen runs, and names
// the settings that are not those of the run before.
func TestServedHistory(t *testing.T) {
	t.Parallel()
	dir, runs := seriesOf(t)
	code, out, errs := cnsbench(t, "", "compare", "--history", dir, "--output", "json")
	if code != exitOK {
		t.Fatal(errs)
	}
	var h histories
	for name, given := range map[string]func() (*web.Answer, error){
		"folder": func() (*web.Answer, error) { return h.answer(t.Context(), dir, nil) },
		"runs":   func() (*web.Answer, error) { return h.answer(t.Context(), "", runs) },
		"again":  func() (*web.Answer, error) { return h.answer(t.Context(), "", runs) },
	} {
		a, err := given()
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := writeJSON(&b, a.Result); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(out, b.String()); diff != "" {
			t.Errorf("%s: (-compare, +served)\n%s", name, diff)
		}
		if len(a.Objectives) == 0 || !strings.Contains(out, `"max(snap)"`) || a.Objectives[0] != "max(snap)" {
			t.Errorf("%s: objectives %q", name, a.Objectives)
		}
		for i, r := range runs {
			changed := a.Changed[r.Label]
			if want := i == 6; (len(changed) == 1) != want || want && (changed[0].Fact != "platform" ||
				*changed[0].Then != "local" || *changed[0].Now != "kubernetes") {
				t.Errorf("%s, %s: %+v", name, r.Label, changed)
			}
		}
	}
	if len(h.runs) != len(runs) {
		t.Errorf("%d runs are kept", len(h.runs))
	}
}

// TestServedHistoryChanges: a run that has changed is read again, one that cannot be read is left out of a Benchmark's
// runs, and fails a folder as it fails the command.
func TestServedHistoryChanges(t *testing.T) {
	t.Parallel()
	dir, runs := seriesOf(t)
	var h histories
	if _, err := h.answer(t.Context(), "", runs); err != nil {
		t.Fatal(err)
	}
	editJSON(t, filepath.Join(runs[3].Dir, runFile), func(run map[string]any) { run["engine"] = "other" })
	if err := os.WriteFile(filepath.Join(runs[4].Dir, runFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(runs[5].Dir, "manifest.json")); err != nil {
		t.Fatal(err)
	}
	editJSON(t, filepath.Join(runs[5].Dir, runFile), func(run map[string]any) { run["labels"] = 1 })
	a, err := h.answer(t.Context(), "", runs)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	if c := a.Changed["run-03"]; len(c) != 1 || *c[0].Now != "other" || len(a.Result.Levels) != 10 {
		t.Errorf("%s", text)
	}
	for _, want := range []string{"run-04", errIncomplete.Error() + "; it is left out"} {
		if !strings.Contains(strings.Join(a.Result.Notes, "\n"), want) {
			t.Errorf("no %q in the notes %q", want, a.Result.Notes)
		}
	}
	if _, err := h.answer(t.Context(), dir, nil); err == nil {
		t.Error("a folder with a run that cannot be read has a history")
	}
	if _, err := h.answer(t.Context(), "", runs[4:6]); err == nil ||
		!strings.Contains(err.Error(), "no run of the history is complete") {
		t.Errorf("%v", err)
	}
}

// TestOneRun: a history of one run says how many it needs.
func TestOneRun(t *testing.T) {
	t.Parallel()
	_, runs := seriesOf(t)
	a, err := new(histories).answer(t.Context(), "", runs[:1])
	if err != nil {
		t.Fatal(err)
	}
	const want = "too few runs for a change point: 1 have a value, it needs 10"
	if h := a.Result.History[0]; !strings.Contains(h.Sentence, want) {
		t.Errorf("%q", h.Sentence)
	}
}
