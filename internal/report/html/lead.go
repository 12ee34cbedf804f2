package html

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/op"
)

// runLine says in one line what was run: workloads, control operations with their rate, storage, engine and duration.
func (p *page) runLine() string {
	spec := p.spec()
	var parts []string
	for _, w := range p.shown() {
		if n := len(w.Instances); n > 1 {
			parts = append(parts, fmt.Sprintf("%s × %d", w.Action, n))
		} else {
			parts = append(parts, w.Action)
		}
	}
	for _, a := range p.Actions {
		if a.Rate == "" && a.Kind == op.Create || a.N == 0 {
			continue // the workloads
		}
		text := fmt.Sprintf("%s: %d %s ops", a.Name, a.N, a.Kind)
		if every := interval(spec, a.Rate); every != "" {
			text += " (a trigger every " + every + ")"
		} else if a.OfferedPerSecond != nil {
			text += fmt.Sprintf(" (%s/s)", units.Count(*a.OfferedPerSecond))
		}
		parts = append(parts, text)
	}
	if storage := p.storage(); storage != "" {
		parts = append(parts, "storage: "+storage)
	}
	if p.Engine != "" {
		parts = append(parts, "engine "+p.Engine)
	}
	if p.EndedAt.Known() {
		parts = append(parts, units.Duration(float64(p.EndedAt)))
	}
	return strings.Join(parts, " · ")
}

// spec is that of run.json, which is the Benchmark or its spec alone; empty if it cannot be read: the page has its
// text.
func (p *page) spec() *dataset.Spec {
	var read struct {
		dataset.Spec
		Whole *dataset.Spec `json:"spec"`
	}
	if len(p.Run.Spec) == 0 || json.Unmarshal(p.Run.Spec, &read) != nil {
		return &dataset.Spec{}
	}
	if read.Whole != nil {
		return read.Whole
	}
	return &read.Spec
}

// storage names the StorageClasses with their drivers.
func (p *page) storage() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(p.Facts.StorageClasses)) {
		if driver, ok := p.Facts.StorageClasses[name].(string); ok && driver != name {
			name += " (" + driver + ")"
		}
		list = append(list, name)
	}
	return strings.Join(list, ", ")
}

// interval is the time between the triggers of a rate, as in the file; empty if it has none.
func interval(spec *dataset.Spec, rate string) string {
	for _, r := range spec.Rates {
		if r.Name == rate && r.ConstantRate != nil {
			return r.ConstantRate.Interval
		}
	}
	return ""
}

// findings are the sentences of the headline without that on the objectives, which has a place of its own.
func (p *page) findings() []string {
	line := p.ObjectivesLine()
	return slices.DeleteFunc(slices.Clone(p.Headline), func(s string) bool { return s == line })
}

// met reports whether all objectives were met.
func (p *page) met() bool {
	return !slices.ContainsFunc(p.Verdicts, func(v slo.Verdict) bool { return statusClass(v.Status) != "good" })
}
