package terminal_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/cnsbench/cnsbench/internal/analysis/opview"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

func writeOp(t *testing.T, b *bundle.Bundle, name string) string {
	t.Helper()
	v, err := opview.Make(b, name)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := terminal.WriteOp(&out, v, terminal.Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWriteOp(t *testing.T) {
	demo, _ := analysistest.Demo(t)
	for o, err := range demo.Ops() {
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"Instant", "Log"}
		switch o.Outcome {
		case op.Error:
			want = append(want, o.Code, "kept because: error", "driver loop: alive at ", "n = ")
		case op.Dropped:
			want = append(want, "the op never started")
		}
		text := writeOp(t, demo, fmt.Sprint(o.ID))
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%v does not say %q:\n%s", o.String(), w, text)
			}
		}
	}
}

// TestWriteOpHostile checks that names and log lines cannot steer the terminal.
func TestWriteOpHostile(t *testing.T) {
	text := writeOp(t, analysistest.Hostile(t), "99")
	if !strings.Contains(text, "password=") || strings.Contains(text, "hunter2") {
		t.Errorf("the log line is missing, or has its secret:\n%s", text)
	}
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("control character %q in:\n%s", r, text)
		}
	}
}
