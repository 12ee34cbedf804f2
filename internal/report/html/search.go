package html

import (
	"fmt"
	"slices"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
)

// shown returns the workloads that are neither steps nor drivers.
func (p *page) shown() []summary.Workload {
	return slices.DeleteFunc(slices.Clone(p.Workloads), func(w summary.Workload) bool { return w.Step || isDriver(w) })
}

// isDriver reports whether a workload has load generator processes only.
func isDriver(w summary.Workload) bool {
	return len(w.Metrics) == 0 && !slices.ContainsFunc(w.Instances, func(i summary.Instance) bool { return !i.Driver })
}

// drivers returns the load generator processes.
func (p *page) drivers() []summary.Instance {
	var list []summary.Instance
	for _, w := range p.Workloads {
		if isDriver(w) {
			list = append(list, w.Instances...)
		}
	}
	return list
}

// steps returns the workloads that are steps of a search or a scaling.
func (p *page) steps() []summary.Workload {
	return slices.DeleteFunc(slices.Clone(p.Workloads), func(w summary.Workload) bool { return !w.Step })
}

// spread formats the range of throughput of a row's repetitions.
func spread(perSecond []float64) string {
	if len(perSecond) < 2 {
		return "–"
	}
	return units.Count(slices.Min(perSecond)) + " – " + units.Count(slices.Max(perSecond))
}

// gain formats an optional share.
func gain(v *float64) string {
	return optional(v, func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) })
}

// scaleChart draws throughput over workers. A bar is the range of the repetitions, a
// vertical line the knee.
func scaleChart(s *summary.Scaling) template.HTML {
	rows := slices.DeleteFunc(slices.Clone(s.Rows), func(r summary.ScaleRow) bool {
		return r.Workers < 1 ||
			len(r.PerSecond) == 0
	})
	if len(rows) < 2 {
		return ""
	}
	most := 1.0
	for _, r := range rows {
		most = max(most, slices.Max(r.PerSecond))
	}
	first, last := float64(rows[0].Workers), float64(rows[len(rows)-1].Workers)
	v := newChart("Operations a second by workers",
		scale{min: first, max: last, lo: chartLeft + 10, hi: chartRight - 10, log: true}, scale{max: most * 1.05})
	v.counts()
	if k := s.Knee; k != nil && k.Workers != nil {
		at := v.x.at(float64(*k.Workers))
		v.path([][2]float64{{at, chartBottom}, {at, chartTop}}, "c1 dashed",
			fmt.Sprintf("the knee, at %d workers", *k.Workers))
	}
	var line [][2]float64
	for _, r := range rows {
		workers := float64(r.Workers)
		v.tick(workers, fmt.Sprint(r.Workers))
		v.path([][2]float64{v.at(workers, slices.Min(r.PerSecond)), v.at(workers, slices.Max(r.PerSecond))}, "c0",
			fmt.Sprintf("%d workers: %s a second, %d times", r.Workers, units.Count(r.MedianPerSecond),
				len(r.PerSecond)))
		line = append(line, v.at(workers, r.MedianPerSecond))
	}
	v.path(line, "c0", "operations a second")
	return v.close()
}
