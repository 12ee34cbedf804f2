// Package slo judges the objectives of a run from its bundle.
//
// A latency is known of ops that were ok, or that had passed the milestone; ops that
// timed out or were cut off before are lower bounds. Dropped ops are infinite in the
// response view and absent in the service view. Failed ops have no latency; errors
// counts them.
//
// An op is in a window by its interval from start to end, a canary I/O by its own, a
// tool's time slice by any overlap.
package slo

import (
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/throughput"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Verdict is the judgement of one objective.
type Verdict struct {
	Name string `json:"name"`
	Expr string `json:"expr"`
	expr.Verdict
}

// Judge judges every SLO of the run's spec. An invalid expression is a verdict.
type Judge struct {
	data     *dataset.Data
	programs []*expr.Program // nil: invalid
	verdicts []Verdict
	source   *source
}

// NewJudge reads what does not depend on single ops. The error is one of reading the bundle.
func NewJudge(d *dataset.Data) (*Judge, error) {
	j := &Judge{data: d, programs: make([]*expr.Program, len(d.Spec.SLOs)), verdicts: make([]Verdict, len(d.Spec.SLOs))}
	var queries []expr.Query
	for i, s := range d.Spec.SLOs {
		j.verdicts[i] = Verdict{Name: s.Name, Expr: s.Expr}
		p, err := expr.Compile(s.Expr, expr.Env{})
		if err != nil {
			j.verdicts[i].Verdict = expr.Verdict{Status: expr.Failed, Message: err.Error()}
			continue
		}
		j.programs[i] = p
		queries = append(queries, p.Queries()...)
	}
	var err error
	j.source, err = withoutOps(d, queries)
	return j, err
}

// Meters are those that rates are judged by. Add leaves them to the caller from then on, who has to add all ops.
func (j *Judge) Meters() *throughput.Meters {
	j.source.metered = true
	return j.source.meters
}

// Add adds an op. All have to be added, in the order of the bundle.
func (j *Judge) Add(o *op.Op) { j.source.add(o) }

// Verdicts judges the objectives.
func (j *Judge) Verdicts() []Verdict {
	for i, p := range j.programs {
		if p != nil {
			j.verdicts[i].Verdict = p.Judge(j.source, j.data.Spec.SLOs[i].FewValues)
		}
	}
	return j.verdicts
}

// Least is the number of values from which a trial has the quantile of a query: of fewer it is an extreme of the sample,
// and has no 95 % interval. 0: any number, as of a median, an extreme, or what is no quantile.
func Least(q expr.Query) int64 {
	if q.Func != expr.Quantile && q.Func != expr.Interference || q.Q == 0.5 {
		return 0
	}
	return stats.MinN(q.Q)
}

// TooFew reports whether a value is a quantile of fewer values than Least.
func TooFew(q expr.Query, v expr.Value) bool { return v.Few != nil && Least(q) > 0 }

// Answer is the value of one query, or an error, such as expr.ErrNoData.
type Answer struct {
	Value expr.Value
	Err   error
}

// Answers evaluates queries. The error is one of reading the bundle.
func Answers(d *dataset.Data, queries []expr.Query) ([]Answer, error) {
	src, err := newSource(d, queries)
	if err != nil {
		return nil, err
	}
	list := make([]Answer, len(queries))
	for i, q := range queries {
		list[i].Value, list[i].Err = src.Value(q)
	}
	return list, nil
}

// Record converts verdicts to those of run.json.
func Record(vs []Verdict) []bundle.Verdict {
	var out []bundle.Verdict
	for _, v := range vs {
		var observed []string
		for _, o := range v.Observed {
			observed = append(observed, o.String())
		}
		out = append(out, bundle.Verdict{
			Name: v.Name, Expr: v.Expr, Status: bundle.Status(v.Status),
			Observed: strings.Join(observed, "; "), Message: v.Message,
		})
	}
	return out
}

// Met reports whether every objective passed.
func Met(vs []Verdict) bool {
	return !slices.ContainsFunc(vs, func(v Verdict) bool { return v.Status != expr.Pass })
}
