package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStudyNotReady: a study begins only if this machine has the programs that its trials need.
func TestStudyNotReady(t *testing.T) {
	t.Setenv("CNSBENCH_AGENT", "/nonexistent/agent")
	out := filepath.Join(t.TempDir(), "study")
	code, _, errs := call("study", "run", "../../examples/study.yaml", "--out", out)
	if code != exitFailed || !strings.Contains(errs, "/nonexistent/agent") || strings.Contains(errs, "trial 1") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("the study has begun")
	}
	if code, _, errs := call("study", "run", "../../examples/study.yaml", "--out", out, "--dry-run"); code != exitOK {
		t.Errorf("a dry run needs no agent: exit code %d\n%s", code, errs)
	}
}

func TestHalfWidthText(t *testing.T) {
	for _, tt := range []struct {
		share float64
		want  string
	}{{0.0512, "± 5.12 %"}, {9.99, "± 999 %"}, {27.4e6, "> ± 999 %"}} {
		if got := halfWidthText(&tt.share); got != tt.want {
			t.Errorf("%g: %q, want %q", tt.share, got, tt.want)
		}
	}
}

// TestStandardInputOfTrials checks that each trial of a study has the text of the standard input.
func TestStandardInputOfTrials(t *testing.T) {
	const text = "kind: Benchmark\n"
	s := &streams{in: strings.NewReader(text), out: io.Discard, err: io.Discard}
	for trial := range 2 {
		files, err := readFiles(s, []string{"-"})
		if err != nil || len(files) != 1 || string(files[0].Data) != text {
			t.Errorf("trial %d: %q, %v, want %q", trial, files, err, text)
		}
	}
}
