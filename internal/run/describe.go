package run

import (
	"encoding/json"
	"slices"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// Facts is what a bundle records about a plan in addition to the Benchmark.
type Facts struct {
	Runtime        string            `json:"runtime,omitempty"`
	Grace          string            `json:"gracePeriod"`
	StorageClasses map[string]string `json:"storageClasses"` // class → driver
	Budget         plan.Budget       `json:"budget"`
	Closed         []string          `json:"closedLoops,omitempty"` // actions whose response equals service
	Vars           map[string]any    `json:"vars,omitempty"`
	// Variants are the variables that differ between the instances of an action: instance i has those at
	// index i modulo their number.
	Variants map[string][]map[string]string `json:"variants,omitempty"`
	Tenants  []plan.Tenant                  `json:"tenants,omitempty"`
	Warnings []string                       `json:"warnings,omitempty"`
	// Args are the flags that affect the run; Inject is the text of the faults to inject.
	Args   []string `json:"args,omitempty"`
	Inject string   `json:"inject,omitempty"`
}

// NewFacts returns the facts of a plan. The caller sets Args and Inject.
func NewFacts(p *plan.Plan) Facts {
	f := Facts{Grace: p.Grace.String(), StorageClasses: map[string]string{}, Budget: p.Budget,
		Tenants: p.Tenants, Vars: map[string]any{}, Variants: map[string][]map[string]string{}}
	if p.Runtime > 0 {
		f.Runtime = p.Runtime.String()
	}
	for n, sc := range p.StorageClasses {
		f.StorageClasses[n] = sc.Provisioner
	}
	closed := map[string]bool{}
	for _, r := range p.Rates {
		closed[r.Name] = r.Closed()
	}
	for _, a := range p.Actions {
		if closed[a.Rate] {
			f.Closed = append(f.Closed, a.Name)
		}
		if a.Workload != nil {
			f.Vars[a.Name] = a.Workload.Vars
			if len(a.Workload.Own) > 1 {
				f.Variants[a.Name] = a.Workload.Own
			}
		}
	}
	for _, w := range p.Warnings {
		f.Warnings = append(f.Warnings, w.String())
	}
	return f
}

// Describe returns run.json as of the start of a run. The caller adds engine, versions, clock and identity.
func Describe(id string, p *plan.Plan, files []plan.File, facts Facts) bundle.Run {
	spec, _ := json.Marshal(p.Benchmark) // API types always marshal
	resolved, _ := json.Marshal(facts)
	source := bundle.Source{File: files[0].Name, Text: string(plan.WithoutSecrets(files[0].Data)), Workloads: Workloads(p)}
	for _, f := range files[1:] {
		source.Text += "\n---\n# " + f.Name + "\n" + string(plan.WithoutSecrets(f.Data))
	}
	for _, r := range p.Rates {
		if t := r.Trace; t != nil {
			source.Traces = append(source.Traces,
				bundle.Trace{Rate: r.Name, File: t.Name, SHA256: t.SHA256, Records: t.Records})
		}
	}
	sampling := p.Sampling()
	return bundle.Run{ID: id, Name: p.Name, State: bundle.Running, Spec: spec, Source: source, Plan: resolved,
		Sampling: &bundle.Sampling{Level: sampling.Level, IntervalNs: int64(sampling.Interval),
			MaxOverhead: p.Metrics.MaxOverhead}, Seed: p.Seed, BarrierAt: op.Never, EndedAt: op.Never}
}

// Workloads returns the library entries that a plan uses, without duplicates.
func Workloads(p *plan.Plan) (list []bundle.Workload) {
	for _, a := range p.Actions {
		if w := a.Workload; w != nil {
			one := bundle.Workload{Name: w.Entry, Origin: w.Origin, SHA256: w.SHA256}
			if !slices.Contains(list, one) {
				list = append(list, one)
			}
		}
	}
	return list
}

// RateStats returns the statistics of the run's rates for the bundle.
func (r *Result) RateStats() []bundle.RateStats {
	var stats []bundle.RateStats
	for _, c := range r.Rates {
		s := bundle.RateStats{Name: c.Rate, Triggers: c.Triggers, Started: c.Started, Dropped: c.Dropped, Late: c.Late,
			Condition: c.Condition}
		if c.Active > 0 {
			s.Offered, s.Achieved = float64(c.Ops)/c.Active.Seconds(), float64(c.OK)/c.Active.Seconds()
		}
		if c.Lateness != nil && c.Lateness.N() > 0 {
			s.LateP99Ns, _ = c.Lateness.Quantile(0.99)
		}
		stats = append(stats, s)
	}
	return stats
}
