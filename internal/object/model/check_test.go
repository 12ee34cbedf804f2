package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// TestWorkersWithNothingToDo checks that workers without any part of a division are a warning, and an error
// under a rate: a rate gives each worker its turn, and what is due on a host with only such workers would not
// be executed.
func TestWorkersWithNothingToDo(t *testing.T) {
	upTo := func(n int64) selector.Spec { return selector.Spec{Kind: selector.Range, Low: 1, High: n} }
	owned := func(o *model.Op) {
		o.Type, o.Checks, o.Sizes = model.Write, []model.IntegrityCheck{model.ListAfterWrite},
			selector.Sizes{Spec: upTo(1), Unit: 100}
	}
	for _, tt := range []struct {
		name   string
		change func(*model.Op)
		want   string
	}{
		{"enough", func(o *model.Op) { o.Division = model.ByObject }, ""},
		{"by object", func(o *model.Op) { o.Division, o.Objects = model.ByObject, upTo(3) },
			"divided by object, 5 of 8 workers have nothing to read"},
		{"by container", func(o *model.Op) { o.Division = model.ByContainer },
			"divided by container, 1 of 8 workers have nothing to read"},
		{"objects of their own", func(o *model.Op) { owned(o); o.Objects = upTo(2) },
			"with an object for one worker each, 6 of 8 workers have nothing to write"},
		{"objects of their own, enough", owned, ""},
		{"undivided", func(o *model.Op) { o.Objects = upTo(1) }, ""},
	} {
		for _, open := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, rate %v", tt.name, open), func(t *testing.T) {
				w := work("main", 8, func(w *model.Work) {
					w.TotalOps, w.Ops[0].Division = 100, model.ByNone
					if tt.change(&w.Ops[0]); open {
						w.Rate = schedule.Constant{Rate: 10}
					}
				})
				ps := model.Check(&model.Workload{Stages: []model.Stage{{Name: "s", Works: []model.Work{w}}}},
					model.COSBench, backend.Traits)
				said := fmt.Sprint(ps)
				if tt.want == "" && len(ps) > 0 || !strings.Contains(said, tt.want) ||
					ps.Fatal() != (tt.want != "" && open) {
					t.Errorf("%s; want %q", said, tt.want)
				}
			})
		}
	}
}

// TestRangesThatDoNotFit checks that the message has what several ranges in one request need.
func TestRangesThatDoNotFit(t *testing.T) {
	for _, tt := range []struct {
		length, within int64
		want           string
	}{
		{1000, 10000, "each is in a section of its own, of a multiple of 4096 bytes: at least within=12288"},
		{1000, 12288, ""},
		{5000, 20000, "at least within=24576"},
		{0, 0, "3 ranges have no length: give length and within"},
	} {
		w := work("main", 1, func(w *model.Work) {
			w.TotalOps, w.Ops[0].Length, w.Ops[0].Within, w.Ops[0].Options.Ranges = 100, tt.length, tt.within, 3
		})
		said := fmt.Sprint(model.Check(&model.Workload{Stages: []model.Stage{{Name: "s", Works: []model.Work{w}}}},
			model.COSBench, backend.Traits))
		if !strings.Contains(said, tt.want) || (tt.want == "") != !strings.Contains(said, "ranges") {
			t.Errorf("length %d, within %d: %s, want %q", tt.length, tt.within, said, tt.want)
		}
	}
}
