package study

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/stats/series"
)

// preconditionDir has the bundles of the rounds before each occasion.
const preconditionDir = "precondition"

// defaultAtMost bounds the rounds of a cell that becomes not steady.
const defaultAtMost = 25

func preconditionOf(spec *v1alpha1.StudySpec) *Precondition {
	p := spec.Precondition
	if p == nil {
		return nil
	}
	own := &Precondition{Own: p.Benchmark != nil, Rounds: int(max(1, p.Rounds))}
	if s := p.SteadyState; s != nil {
		own.Response, own.AtMost = s.Response, int(s.AtMost)
		if own.AtMost == 0 {
			own.AtMost = max(defaultAtMost, own.Rounds)
		}
	}
	return own
}

// warmUpJob is what a round of a cell runs: the study's Benchmark with the draws of the first block, or its own.
func (d *Design) warmUpJob(occasion, cell int) Job {
	_, drawn := d.draw(occasion, 1)
	j := Job{Precondition: d.Precondition.Own, Set: slices.Concat(d.Base, d.Cells[cell].Set, drawn)}
	if j.Precondition {
		j.Set = variables(j.Set)
	}
	return j
}

// WarmUp is the preconditioning of one cell on one occasion.
type WarmUp struct {
	Occasion int    `json:"occasion"`
	Cell     string `json:"cell"`
	// Rounds that have run.
	Rounds int `json:"rounds"`
	// Values of the response that must be steady, one of each round; null: the round has none.
	Values []*float64 `json:"values,omitempty"`
	// Steady says whether the last five rounds are steady; null: no rule, or fewer rounds.
	Steady *bool `json:"steady"`
	// Range and Slope of the last five rounds, as shares of their mean: the greatest less the least value, and the
	// rise of the least-squares line from the first to the last.
	Range *float64 `json:"range,omitempty"`
	Slope *float64 `json:"slope,omitempty"`
	// Within is the cross-check within the last round; absent: it has no values over time, or fewer than 50.
	Within *Transient `json:"withinRound,omitempty"`
}

// round is a run of a cell before an occasion. It has the form of a trial, and is none.
func (d *Design) round(occasion, cell, n int) Trial {
	name := fmt.Sprintf("o%d_%.80s_w%d", occasion, plainName(d.Cells[cell]), n)
	return Trial{Name: path.Join(preconditionDir, name), Cell: cell, Occasion: occasion, Block: n}
}

// add notes a round with its response.
func (w *WarmUp) add(v *float64) {
	w.Rounds++
	w.Values = append(w.Values, v)
	if len(w.Values) < series.Window {
		return
	}
	var last []float64
	for _, v := range w.Values[len(w.Values)-series.Window:] {
		if v == nil {
			w.Steady = new(bool)
			return
		}
		last = append(last, *v)
	}
	s, ok := series.Steady(last)
	w.Steady = &ok
	if ok {
		w.Steady, w.Range, w.Slope = &s.Steady, &s.Range, &s.Slope
	}
}

// enough says whether a cell needs no further round.
func (p *Precondition) enough(w *WarmUp) bool {
	switch {
	case w.Rounds < p.Rounds:
		return false
	case p.Response == "":
		return true
	}
	return w.Steady != nil && *w.Steady || w.Rounds >= p.AtMost
}

// precondition runs the rounds of an occasion that have no complete bundle, cell by cell in random order.
func (d *Dir) precondition(ctx context.Context, x Executor, occasion int, log io.Writer) error {
	for _, cell := range d.shuffle(1<<63 | uint64(occasion)) {
		if d.Cells[cell].AAOf != nil {
			continue // the storage of another cell
		}
		if err := d.warmUp(ctx, x, occasion, cell, log); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dir) warmUp(ctx context.Context, x Executor, occasion, cell int, log io.Writer) error {
	w := WarmUp{Occasion: occasion, Cell: d.Cells[cell].Name()}
	for !d.Precondition.enough(&w) {
		t := d.round(occasion, cell, w.Rounds+1)
		if d.Bundle(t) == nil {
			fmt.Fprintf(log, "precondition, occasion %d: %s, round %d\n", occasion, w.Cell, w.Rounds+1)
			if _, err := d.run(ctx, x, t, d.warmUpJob(occasion, cell), log); err != nil {
				return err
			}
		}
		v, err := d.roundValue(t)
		if err != nil {
			return err
		}
		w.add(v)
	}
	if d.Unsteady(&w) {
		fmt.Fprintf(log, "precondition, occasion %d: %s is not steady after %d rounds; the study goes on\n", occasion,
			w.Cell, w.Rounds)
	}
	return nil
}

// Unsteady reports whether a cell was to become steady before its occasion, and did not.
func (d *Dir) Unsteady(w *WarmUp) bool {
	return d.Precondition != nil && d.Precondition.Response != "" && (w.Steady == nil || !*w.Steady)
}

// roundValue is the response of a round that must be steady; nil: it has none.
func (d *Dir) roundValue(t Trial) (*float64, error) {
	b := d.Bundle(t)
	if b == nil || d.Precondition.Response == "" {
		return nil, nil
	}
	v, err := answerOne(b, d.Precondition.Response)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Of(t), err)
	}
	return v, nil
}

// answerOne is the finite value of one response in a bundle; nil: it has none.
func answerOne(b *bundle.Bundle, response string) (*float64, error) {
	queries, err := Responses([]string{response})
	if err != nil {
		return nil, err
	}
	data, err := dataset.Read(b)
	if err != nil {
		return nil, err
	}
	answers, err := slo.Answers(data, queries)
	if err != nil || answers[0].Err != nil {
		return nil, err
	}
	return finite(answers[0].Value.Number), nil
}

// WarmUps reads what was run before each occasion.
func (d *Dir) WarmUps() ([]WarmUp, error) {
	if d.Precondition == nil {
		return nil, nil
	}
	var list []WarmUp
	for o := range d.OccasionCount() {
		for cell := range d.Cells {
			w := WarmUp{Occasion: o + 1, Cell: d.Cells[cell].Name()}
			for {
				t := d.round(o+1, cell, w.Rounds+1)
				if d.Bundle(t) == nil && !d.failed(t) { // a failed round counts, as in warmUp
					break
				}
				v, err := d.roundValue(t)
				if err != nil {
					return nil, err
				}
				w.add(v)
			}
			if w.Rounds == 0 {
				continue
			}
			if err := d.crossCheck(&w, d.round(o+1, cell, w.Rounds)); err != nil {
				return nil, err
			}
			list = append(list, w)
		}
	}
	return list, nil
}

// crossCheck judges the time steps within the last round.
func (d *Dir) crossCheck(w *WarmUp, last Trial) error {
	b := d.Bundle(last)
	if b == nil || d.Precondition.Response == "" {
		return nil
	}
	var err error
	if w.Within, err = transientOf(b, d.Precondition.Response); err != nil {
		return fmt.Errorf("%s: %w", d.Of(last), err)
	}
	if w.Within != nil {
		w.Within.Round = w.Rounds
	}
	return nil
}
