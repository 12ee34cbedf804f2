package summary_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestUnfired: an action of the file that had no op is listed in its place, with
// why, and no objective over it passes.
func TestUnfired(t *testing.T) {
	const (
		rest = `],"slos":[{"name":"o","expr":"errors(x) == 0"}],
			"rates":[{"name":"r","startAfter":"5m","constantRateSpec":{"interval":"1h"}},
				{"name":"late","startAfterAction":"first"}]}`
		measuredTime = " in the 61 s from the barrier to the end of the run"
	)
	early := func(b *bundle.Bundle) { b.Run.BarrierAt = op.Never }
	for _, tt := range []struct {
		name, actions string
		change        func(*bundle.Bundle)
		kind          op.Kind
		want          string
	}{
		{"rate", `{"name":"x","rateName":"r","snapshotSpec":{}}`, nil, op.Snapshot,
			"rate r, interval 1h, from 5m after the barrier, triggered nothing" + measuredTime},
		{"start", `{"name":"x","startAfter":"1h","createObjSpec":{}}`, nil, op.Create,
			"it starts 1h after the barrier, and nothing was due" + measuredTime},
		{"trigger", `{"name":"x","rateName":"late","deleteSpec":{}},{"name":"first","createObjSpec":{}}`, nil,
			op.Delete,
			"it starts after an op of first has ended, and none began"},
		{"parent", `{"name":"x","resizeSpec":{}},{"name":"first","createObjSpec":{},"then":["x"]}`, nil, op.Resize,
			"it follows each op of first, and none began"},
		{"others' turn", `{"name":"x","rateName":"r","killSpec":{}}`, func(b *bundle.Bundle) {
			b.Run.Rates = []bundle.RateStats{{Name: "r", Triggers: 2}}
		}, op.Kill, "rate r triggered 2 times, none of them for it"},
		{"barrier", `{"name":"x","rateName":"r","drainSpec":{}}`, early, op.Drain, "the run ended before its barrier"},
		{"live", `{"name":"x","scaleSpec":{}}`, func(b *bundle.Bundle) { b.Live = true }, op.Scale,
			"the run is in progress"},
		{"killed", `{"name":"x","modifySpec":{}}`, func(b *bundle.Bundle) {
			b.Complete, b.Run.State = false, bundle.Running
		}, op.Modify, "the bundle was never closed: the run ended before it, or its ops were not written"},
		{"a file of a closed bundle is missing", `{"name":"x","modifySpec":{}}`, func(b *bundle.Bundle) {
			b.Complete, b.Run.State = false, bundle.Complete
		}, op.Modify, "the bundle is incomplete, and may lack its ops: see the warning"},
		{"interrupted", `{"name":"x","startAfter":"5s","modifySpec":{}}`, func(b *bundle.Bundle) {
			b.Run.State = bundle.Interrupted
		}, op.Modify, "it starts 5s after the barrier, and nothing was due before the run was interrupted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := analysistest.Empty(t)
			b.Run.Spec = json.RawMessage(`{"actions":[` + tt.actions + rest)
			if tt.change != nil {
				tt.change(b)
			}
			s, err := summary.Make(b)
			if err != nil {
				t.Fatal(err)
			}
			a := s.Actions[0]
			if a.Name != "x" || a.N != 0 || a.Kind != tt.kind || a.NoOps != tt.want {
				t.Errorf("%s %s, %d ops: %q, want %s: %q", a.Name, a.Kind, a.N, a.NoOps, tt.kind, tt.want)
			}
			if !slices.Contains(s.Headline, "x: no op: "+tt.want+".") {
				t.Errorf("headline %q", s.Headline)
			}
			if s.Verdicts[0].Status != expr.NoData {
				t.Errorf("an objective over it: %s", s.Verdicts[0].Status)
			}
		})
	}
}

// TestFired: who had ops, and a run without actions, say nothing of that.
func TestFired(t *testing.T) {
	s, _ := demo(t)
	if len(s.Actions) != 2 || s.Actions[0].NoOps+s.Actions[1].NoOps != "" {
		t.Errorf("%+v", s.Actions)
	}
	objects, err := summary.Make(analysistest.Objects(t))
	if err != nil || len(objects.Actions) != 0 {
		t.Errorf("a run of objects has %+v (%v)", objects.Actions, err)
	}
}
