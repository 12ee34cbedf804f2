package runnerstatus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEndSurvivesKubernetes(t *testing.T) {
	barrier := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	e := End{RunID: "abc", State: "failed", Reason: "no space", ExitCode: 2, Barrier: &barrier, Seed: 7,
		Ops:     Counts{"ok": 3, "error": 1},
		Actions: map[string]Counts{"fio": {"ok": 3}}, SLOs: []Verdict{{"quick", "pass", "p99 is 3 ms"}}, Clean: true}
	got, ok := DecodeEnd(string(e.Encode()))
	if !ok {
		t.Fatal("it does not decode")
	}
	if diff := cmp.Diff(e, got); diff != "" {
		t.Error(diff)
	}
}

// Whatever does not fit is given up, but never how the run ended.
func TestEndFits(t *testing.T) {
	long := strings.Repeat("ö\n", 5000)
	var slos []Verdict
	actions := map[string]Counts{}
	for i := range 64 {
		slos = append(slos, Verdict{fmt.Sprintf("objective-%d-%s", i, strings.Repeat("x", 40)), "fail", long})
		actions[fmt.Sprintf("action-%d", i)] = Counts{"ok": 1 << 40, "error": 1 << 40}
	}
	cases := map[string]End{
		"long reason":       {RunID: "abc", State: "failed", Reason: long, ExitCode: 2},
		"long verdicts":     {RunID: "abc", State: "complete", SLOs: slos[:3], ExitCode: 3},
		"many verdicts":     {RunID: "abc", State: "complete", SLOs: slos, ExitCode: 3},
		"many actions":      {RunID: "abc", State: "complete", Actions: actions, Clean: true},
		"everything":        {RunID: "abc", State: "failed", Reason: long, SLOs: slos, Actions: actions, ExitCode: 2},
		"a name of no name": {RunID: long, State: long, ExitCode: 2},
	}
	for name, e := range cases {
		t.Run(name, func(t *testing.T) {
			b := e.Encode()
			if len(b) > EndLimit {
				t.Fatalf("%d bytes", len(b))
			}
			got, ok := DecodeEnd(string(b))
			if !ok || got.ExitCode != e.ExitCode || got.Clean != e.Clean || e.Reason != "" && got.Reason == "" {
				t.Errorf("%v: %s", ok, b)
			}
		})
	}
}

func TestALogIsNoEnd(t *testing.T) {
	for _, text := range []string{"", "cnsbench: it is wrong", "{", "[]", "null", `{"reason":"x"}`, `"state"`} {
		if e, ok := DecodeEnd(text); ok {
			t.Errorf("%q was taken for %+v", text, e)
		}
	}
}

func FuzzDecodeEnd(f *testing.F) {
	f.Add(string(End{State: "complete"}.Encode()))
	f.Add("cnsbench: no")
	f.Fuzz(func(t *testing.T, text string) {
		if e, ok := DecodeEnd(text); ok && len(e.Encode()) > EndLimit {
			t.Errorf("%d bytes", len(e.Encode()))
		}
	})
}
