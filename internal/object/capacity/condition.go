package capacity

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Condition is what has to hold in a window: an expression as objectives have
// them, about the operations of a stage instead of actions, in which a duration
// may be written 20ms.
type Condition struct {
	Text    string
	program *expr.Program
}

// phases are the views of an operation beside its response and service.
var phases = []string{"connect", "firstByte", "drain"}

// Compile reads a condition about the operations of a stage's work of type normal.
func Compile(text string, s *model.Stage) (*Condition, error) {
	w, err := target(s)
	if err != nil {
		return nil, err
	}
	known := map[string][]string{}
	for _, o := range w.Ops {
		known[o.Name] = phases
	}
	p, err := expr.CompileShort(text, expr.Env{Actions: known})
	if err != nil {
		var where *expr.Error
		if errors.As(err, &where) {
			where.Message = ofOperations(where.Message, w.Ops[0].Name)
		}
		return nil, fmt.Errorf("the condition %s: %w", text, err)
	}
	for _, q := range p.Queries() {
		switch q.Func {
		case expr.IOPS, expr.Throughput:
			return nil, fmt.Errorf("the condition %s: operations have no %s; rate(%s) is the number that succeed "+
				"in a second", text, q.Func, q.Metric.Action)
		}
		if len(q.Windows) > 0 || q.Metric.From != "" {
			return nil, fmt.Errorf("the condition %s: during, outside and span need control operations, which an "+
				"object workload does not have", text)
		}
	}
	return &Condition{Text: text, program: p}, nil
}

// ofOperations is what is wrong with an expression in the words of object storage,
// which has operations where objectives have actions; example is one of them.
func ofOperations(message, example string) string {
	if rest, ok := strings.CutPrefix(message, "action "); ok && strings.Contains(rest, " not found") {
		return "operation " + rest
	}
	if strings.HasPrefix(message, "a metric is wanted here, ") {
		return fmt.Sprintf(`an operation is wanted here, such as %s, %s.service or action("a-name-with-dashes")`,
			example, example)
	}
	return message
}

// Judge reports whether the condition held in a stage. Operations that failed or never began count as infinite.
func (c *Condition) Judge(r *loadgen.StageResult) (expr.Verdict, error) {
	w, err := newWindow(r)
	if err != nil {
		return expr.Verdict{}, err
	}
	return c.program.Judge(w, false), nil
}

// HeldByService reports whether the condition would have held if every operation had begun when it was due: then
// workers or CPU were missing.
func (c *Condition) HeldByService(r *loadgen.StageResult) bool {
	w, err := newWindow(r)
	if err != nil {
		return false
	}
	w.service = true
	return c.program.Judge(w, false).Status == expr.Pass
}

// Needs is how many operations a window must have for the quantiles of the condition; by name of operation.
func (c *Condition) Needs() map[string]int64 {
	needs := map[string]int64{}
	for _, q := range c.program.Queries() {
		if q.Func == expr.Quantile {
			needs[q.Metric.Action] = max(needs[q.Metric.Action], stats.MinN(q.Q))
		}
	}
	return needs
}

// window answers queries from the figures of a stage.
type window struct {
	figures map[string]*loadgen.Figures
	service bool // in place of the response
}

func newWindow(r *loadgen.StageResult) (*window, error) {
	w := &window{figures: map[string]*loadgen.Figures{}}
	for i := range r.Works {
		if r.Works[i].Work.Kind != model.Normal { // its operations may have the same names
			continue
		}
		list, err := r.Works[i].Figures()
		if err != nil {
			return nil, err
		}
		for k := range list {
			w.figures[list[k].Name] = &list[k]
		}
	}
	return w, nil
}

// Value evaluates one call of the condition.
func (w *window) Value(q expr.Query) (expr.Value, error) {
	f := w.figures[q.Metric.Action]
	if f == nil {
		return expr.Value{}, fmt.Errorf("%w: no %s operation began", expr.ErrNoData, q.Metric.Action)
	}
	all := f.OK + f.Failed + f.Lost
	count := func(n int64) (expr.Value, error) { return expr.Value{Number: float64(n), N: n}, nil }
	switch q.Func {
	case expr.Count:
		return count(f.OK)
	case expr.Ops:
		return count(all)
	case expr.Errors:
		return count(f.Failed)
	case expr.Dropped:
		return count(f.Lost)
	case expr.Censored:
		return count(0)
	case expr.Rate:
		return expr.Value{Number: f.PerSecond(), N: f.OK}, nil
	}
	return w.latency(q, f)
}

// latency is a quantile, an extreme or the mean of durations. Operations without success count as infinite.
func (w *window) latency(q expr.Query, f *loadgen.Figures) (expr.Value, error) {
	h, infinite := f.Cell.Response, f.Failed+f.Lost
	switch {
	case q.Metric.Name == "connect":
		h, infinite = f.Cell.Connect, 0
	case q.Metric.Name == "firstByte":
		h = f.Cell.First
	case q.Metric.Name == "drain":
		h = f.Cell.Drain
	case q.Metric.View == expr.Service || w.service && q.Metric.View == expr.Default:
		h, infinite = f.Cell.Service, f.Failed
	}
	n := h.N() + infinite
	v := expr.Value{N: n}
	switch q.Func {
	case expr.Min:
		v.Number = float64(h.Min())
	case expr.Max:
		v.Number = float64(h.Max())
	case expr.Mean:
		v.Number = h.Mean()
	case expr.Quantile:
		if need := stats.MinN(q.Q); n < need {
			return v, fmt.Errorf("%w: %d operations; it needs n ≥ %d", expr.ErrNoData, n, need)
		}
		rank := hist.Rank(q.Q, n)
		if rank > h.N() {
			v.Number = math.Inf(1)
			return v, nil
		}
		ns, _ := h.Quantile(float64(rank) / float64(h.N()))
		v.Number = float64(ns)
		return v, nil
	}
	if n == 0 {
		return v, fmt.Errorf("%w: there was none", expr.ErrNoData)
	}
	if infinite > 0 && (q.Func != expr.Min || h.N() == 0) {
		v.Number = math.Inf(1)
	}
	return v, nil
}
