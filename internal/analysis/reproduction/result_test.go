package reproduction

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// again copies a bundle and changes its run.json and environment.json.
func again(t *testing.T, b *bundle.Bundle, change func(run, environment map[string]any)) *bundle.Bundle {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "again")
	if err := os.CopyFS(dir, os.DirFS(b.Dir)); err != nil {
		t.Fatal(err)
	}
	files := map[string]map[string]any{"run.json": nil, "environment.json": nil}
	for name := range files {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		files[name] = m
	}
	change(files["run.json"], files["environment.json"])
	for name, m := range files {
		text, err := json.Marshal(m)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	open, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return open
}

// TestCompare compares a bundle with itself and with a copy in which one fact differs.
func TestCompare(t *testing.T) {
	b, _ := analysistest.Demo(t)
	r, err := Compare([]*bundle.Bundle{b}, []*bundle.Bundle{b})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Facts.Differences) > 0 || r.Facts.Compared < 10 || len(r.Responses) < 4 {
		t.Errorf("facts %+v, %d responses", r.Facts, len(r.Responses))
	}
	for _, x := range r.Responses {
		if len(x.Then) != 1 || len(x.Now) != 1 || x.Ratio == nil && x.Then[0] != nil || x.Ratio != nil && *x.Ratio != 1 {
			t.Errorf("%+v", x)
		}
	}
	for _, d := range r.Comparison.Distributions {
		for _, q := range d.Quantiles {
			if *q.Ratio != 1 || *q.Low > 1 || *q.High < 1 {
				t.Errorf("%s p%g: ratio %g [%g, %g] of a run with itself", d.Metric, 100*q.Q, *q.Ratio, *q.Low, *q.High)
			}
		}
	}
	if len(r.Comparison.Distributions) == 0 || !strings.Contains(strings.Join(r.Sentences, " "), "cannot show") {
		t.Errorf("%d distributions, %q", len(r.Comparison.Distributions), r.Sentences)
	}
	slower := again(t, b, func(run, environment map[string]any) {
		environment["blockDevices"].([]any)[0].(map[string]any)["scheduler"] = "bfq"
		run["validity"] = []any{map[string]any{"name": "lateDispatch", "severity": "warning"}}
	})
	r, err = Compare([]*bundle.Bundle{b}, []*bundle.Bundle{slower})
	if err != nil {
		t.Fatal(err)
	}
	if d := r.Facts.Differences; len(d) != 1 || !strings.HasSuffix(d[0].Fact, ".scheduler") || *d[0].Now != "bfq" {
		t.Errorf("differences %+v", d)
	}
	found := false
	for i := range r.Flags {
		found = found || r.Flags[i].Name == "lateDispatch" && r.Flags[i].Differs()
	}
	if !found {
		t.Errorf("flags %+v", r.Flags)
	}
}

// TestVerdictNeedsRuns checks that one earlier run has no verdict, and that several of each side have.
func TestVerdictNeedsRuns(t *testing.T) {
	b, _ := analysistest.Demo(t)
	many := func(n int) (list []*bundle.Bundle) {
		for range n {
			list = append(list, b)
		}
		return list
	}
	one, err := Compare(many(1), many(6))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range one.Comparison.Comparisons {
		if c.Verdict != "none" && c.Verdict != "inconclusive" {
			t.Errorf("%s: verdict %s of one run against six", c.Metric, c.Verdict)
		}
	}
	if text := strings.Join(one.Sentences, " "); !strings.Contains(text, "probability at most 0.29") { // 2/7
		t.Errorf("%q", one.Sentences)
	}
	six, err := Compare(many(6), many(6))
	if err != nil {
		t.Fatal(err)
	}
	equal := 0
	for _, c := range six.Comparison.Comparisons {
		if c.Verdict == "equivalent" {
			equal++
		}
	}
	if equal == 0 {
		t.Errorf("no verdict of six equal runs on each side: %+v", six.Comparison.Comparisons)
	}
}

// TestIncomplete checks the error for a run that did not complete.
func TestIncomplete(t *testing.T) {
	b, _ := analysistest.Demo(t)
	if _, err := Compare([]*bundle.Bundle{b}, []*bundle.Bundle{analysistest.Killed(t)}); !errors.Is(err,
		ErrIncomplete) {
		t.Errorf("error %v", err)
	}
}

func TestMedian(t *testing.T) {
	f := func(x float64) *float64 { return &x }
	if m := Median([]*float64{f(3), nil, f(1)}); m == nil || *m != 3 {
		t.Errorf("median %v, want 3: the infinite value is the greatest", m)
	}
	if m := Median([]*float64{nil, nil, f(1)}); m != nil {
		t.Errorf("median %v, want none", *m)
	}
	if m := Median(nil); m != nil {
		t.Errorf("median %v of nothing", *m)
	}
	if low, high := Range([]*float64{f(2), f(math.Pi)}); *low != 2 || *high != math.Pi {
		t.Errorf("range %v to %v", *low, *high)
	}
	if low, high := Range([]*float64{nil, f(math.Pi)}); *low != math.Pi || high != nil {
		t.Errorf("range %v to %v, want 3.14 to infinity", *low, high)
	}
	if low, high := Range(nil); low != nil || high != nil {
		t.Errorf("range %v to %v of nothing", low, high)
	}
}

// TestOutside checks what is said of one earlier value: lower bounds have no range, infinite values are the greatest.
func TestOutside(t *testing.T) {
	f := func(x float64) *float64 { return &x }
	for name, tt := range map[string]struct {
		x    Response
		want string // true, false, or none
	}{
		"inside":          {Response{Then: []*float64{f(2)}, Now: []*float64{f(1), f(3)}}, "false"},
		"below":           {Response{Then: []*float64{f(0)}, Now: []*float64{f(1), f(3)}}, "true"},
		"infinite":        {Response{Then: []*float64{nil}, Now: []*float64{f(1), f(3)}}, "true"},
		"both infinite":   {Response{Then: []*float64{nil}, Now: []*float64{f(1), nil}}, "false"},
		"below infinity":  {Response{Then: []*float64{f(9)}, Now: []*float64{f(1), nil}}, "false"},
		"lower bounds":    {Response{Then: []*float64{f(9)}, Now: []*float64{f(1), f(3)}, Bounds: true}, "none"},
		"one later value": {Response{Then: []*float64{f(9)}, Now: []*float64{f(1)}}, "none"},
	} {
		tt.x.conclude()
		got := "none"
		if tt.x.Outside != nil {
			got = fmt.Sprint(*tt.x.Outside)
		}
		if got != tt.want {
			t.Errorf("%s: outside %s, want %s", name, got, tt.want)
		}
	}
	r := Result{Responses: []Response{{Metric: "a", Now: []*float64{f(1), f(2), f(3)}, Outside: new(bool)},
		{Metric: "b", Now: []*float64{f(1)}}}}
	if got := r.outside(); !strings.Contains(got, "at least 3;") || !strings.Contains(got, "0.5 for each of the 1 metrics") ||
		!strings.Contains(got, "1 other metrics are not compared") {
		t.Error(got)
	}
}
