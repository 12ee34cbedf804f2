package terminal

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

func summaryOf(t *testing.T, bundle func(testing.TB) *bundle.Bundle) *summary.Summary {
	t.Helper()
	s, err := summary.Make(bundle(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSearches: the steps are rows of one table, with the result before it, and no
// rows of workloads.
func TestSearches(t *testing.T) {
	tests := []struct {
		name string
		s    *summary.Summary
		want []string
		not  string
	}{
		{"find", summaryOf(t, analysistest.Found), []string{
			"• main: p99(read) < 20ms holds up to 200 operations",
			"Search of main    per s  achieved   p50    p99  measured  holds\n",
			"  find02            400       399  5 ms      ∞     25 ms     no\n",
			"  prepare write",
		}, "main.find02"},
		{"scale", summaryOf(t, analysistest.Scaled), []string{
			"• main: the knee is at 2 workers",
			"Workers of main    per s  from – to   p50   p99  gain  95 %  failed\n",
			"  2                  200  190 – 210  5 ms  5 ms  95 %     –       0\n",
		}, "main.w"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := write(t, tt.s, Options{})
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("it does not say %q:\n%s", want, text)
				}
			}
			if strings.Contains(text, tt.not) {
				t.Errorf("it lists %s… by itself:\n%s", tt.not, text)
			}
			fits(t, write(t, tt.s, Options{Width: 60}), 60)
		})
	}
}

// TestCutOff: figures of a stage that was cut off are there, and said to be so.
func TestCutOff(t *testing.T) {
	text := write(t, summaryOf(t, analysistest.CutOff), Options{})
	for _, want := range []string{"  main.one read     90  360 KiB/s  2 ms  n<299  3 ms      30  270     0\n",
		"  main.one: incomplete, cut off before its end\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "prepare: incomplete") {
		t.Errorf("what ended is said to be incomplete:\n%s", text)
	}
}
