package summary

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
)

// stages marks what workloads of objects did to prepare and to clear away, and has
// the measured first and the rest in the order of their stages.
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

// measures says whether an action of a run of object storage on its own, a stage or
// STAGE.WORK, is measured. One that no stage is named after is, as a step of a search.
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

// stageOfMetric is the place of the stage that a metric of a workload in a
// Benchmark is of: its name stands before, but of the one stage that is measured.
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

// order sorts metrics by whether they are measured, then by their stage; what is a
// part of another stays with it.
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
