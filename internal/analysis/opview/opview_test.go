package opview_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/opview"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestMake checks that an op is found by its id and by its action and instance.
func TestMake(t *testing.T) {
	demo, _ := analysistest.Demo(t)
	n := 0
	for o, err := range demo.Ops() {
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{fmt.Sprint(o.ID), fmt.Sprintf("%s/%d", o.Action, o.Instance)} {
			if v, err := opview.Make(demo, name); err != nil || v.Op.ID != o.ID {
				t.Errorf("%s: got %+v, %v; want %v", name, v, err, o.String())
			}
		}
		n++
	}
	if n < 10 {
		t.Errorf("%d ops", n)
	}
}

func TestMakeLogs(t *testing.T) {
	demo, _ := analysistest.Demo(t)
	n := map[op.Outcome]int{}
	for o, err := range demo.Ops() {
		if err != nil {
			t.Fatal(err)
		}
		v := opview.Of(true, o, mustLogs(t, demo))
		switch {
		case o.Outcome == op.Error || o.Outcome == op.Censored:
			if v.Logs == nil {
				t.Errorf("%v has no logs: %s", o.String(), v.LogsMissing)
				continue
			}
			for _, l := range v.Logs.Lines {
				if l.At < o.Started-analysistest.Second || l.At > o.Ended+analysistest.Second {
					t.Errorf("%v has a line at %v", o.String(), l.At)
				}
			}
			n[o.Outcome] += len(v.Logs.Lines)
		case o.Outcome == op.Dropped && !strings.Contains(v.LogsMissing, "never started"):
			t.Errorf("%v: %q", o.String(), v.LogsMissing)
		case v.Logs == nil && v.LogsMissing == "":
			t.Errorf("%v has no logs, and no reason", o.String())
		}
		if o.Outcome == op.OK && len(v.Components) == 0 {
			t.Errorf("%v has no components", o.String())
		}
	}
	if n[op.Error] == 0 || n[op.Censored] == 0 {
		t.Errorf("lines by outcome: %v", n)
	}
}

func mustLogs(t *testing.T, b *bundle.Bundle) *bundle.OpLogs {
	t.Helper()
	l, err := b.OpLogs()
	if err != nil {
		t.Fatal(err)
	}
	return &l
}

func TestMakeErrors(t *testing.T) {
	demo, _ := analysistest.Demo(t)
	for name, want := range map[string]string{"x": "invalid op", "": "invalid op", "/1": "invalid op",
		"snapshots/-1": "invalid op", "snapshots/": "invalid op", "99999": "not found", "snapshots/99999": "not found"} {
		v, err := opview.Make(demo, name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %s", name, v, err, want)
		}
		if want == "not found" && !errors.Is(err, opview.ErrNotFound) {
			t.Errorf("%q: %v is not ErrNotFound", name, err)
		}
	}
}

// TestMissing checks that a bundle without log lines says why.
func TestMissing(t *testing.T) {
	v, err := opview.Make(analysistest.Killed(t), "1")
	if err != nil {
		t.Fatal(err)
	}
	if v.Logs != nil || !strings.Contains(v.LogsMissing, "earlier version") {
		t.Errorf("got %+v, %q", v.Logs, v.LogsMissing)
	}
}
