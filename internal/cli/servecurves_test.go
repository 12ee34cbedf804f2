package cli

import (
	"context"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/web"
)

// TestDrawResponses: what is drawn has each action that several runs have, with the number of its ops.
func TestDrawResponses(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(keptRuns, "bundle")
	b, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{}
	for o, err := range b.Ops() {
		if err != nil {
			t.Fatal(err)
		}
		if o.Outcome == op.OK {
			want[o.Action]++
		}
	}
	maps.DeleteFunc(want, func(_ string, n int64) bool { return n < fewOps })
	if len(want) == 0 {
		t.Fatal("no action has enough ops")
	}
	runs := []web.Labelled{{Label: "a<b", Dir: dir}, {Label: "c", Dir: dir},
		{Label: "other", Dir: filepath.Join(keptRuns, "study", "1_parallelism=1_r1")}}
	list, err := drawResponses(t.Context(), runs)
	if err != nil || len(list) != len(want) {
		t.Fatalf("%d overlays, want %d, %v", len(list), len(want), err)
	}
	for _, o := range list {
		if len(o.Curves) != 2 || o.Curves[0].N != want[o.Action] || o.Curves[0].Class == o.Curves[1].Class {
			t.Errorf("%s: %+v, want two of %d ops", o.Action, o.Curves, want[o.Action])
		}
		if strings.Contains(o.SVG, "a<b") || strings.Count(o.SVG, "<path") != 2 {
			t.Errorf("%s: %s", o.Action, o.SVG)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := drawResponses(ended, runs); err == nil {
		t.Error("it does not end with its context")
	}
}
