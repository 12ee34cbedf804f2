package summary

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
)

// stages marks the metrics of preparing and cleaning stages of object workloads, and sorts
// measured ones first and the rest by stage.
func (s *Summary) stages(d *dataset.Data) {
	for i := range s.Workloads {
		w := &s.Workloads[i]
		stages := d.Stages(w.Action)
		if len(stages) == 0 {
			continue
		}
		stageOf := func(metric string) (at int, measured bool) { return stageOfMetric(stages, metric) }
		if d.Bundle.Run.ObjectsOnly() {
			measured := measures(stages, w.Action)
			stageOf = func(string) (int, bool) { return 0, measured }
		}
		order(w.Metrics, stageOf)
		for _, v := range w.Variants {
			order(v.Metrics, stageOf)
		}
		for _, in := range w.Instances {
			order(in.Metrics, stageOf)
		}
	}
}

// measures reports whether an action of an object storage run, STAGE or STAGE.WORK, is
// measured. One without a stage is a step of a search, and measured.
func measures(stages []dataset.Stage, action string) bool {
	for _, s := range stages {
		if s.Name == action {
			return s.Measured()
		}
		for _, w := range s.Works {
			if action == s.Name+"."+w.Name {
				return w.Measured()
			}
		}
	}
	return true
}

// stageOfMetric returns the index of a metric's stage, whose name precedes the metric's;
// -1 for the only measured stage.
func stageOfMetric(stages []dataset.Stage, metric string) (at int, measured bool) {
	at, longest := -1, ""
	for i, s := range stages {
		if strings.HasPrefix(metric, s.Name+".") && len(s.Name) >= len(longest) {
			at, longest = i, s.Name
		}
	}
	if at < 0 {
		return at, true
	}
	return at, stages[at].Measured()
}

// order sorts measured metrics first, then by stage; a part of a metric stays with it.
func order(ms []Metric, stageOf func(metric string) (at int, measured bool)) {
	at := map[string]int{}
	for i := range ms {
		m := &ms[i]
		whole := m.Name
		for _, of := range ms {
			if len(of.Name) < len(whole) && partOf(m.Name, of.Name) {
				whole = of.Name
			}
		}
		stage, measured := stageOf(whole)
		m.Unmeasured, at[m.Name] = !measured, stage
	}
	rank := func(m Metric) int {
		if m.Unmeasured {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(ms, func(a, b Metric) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(at[a.Name], at[b.Name]))
	})
}
