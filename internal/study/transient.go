package study

import (
	"fmt"
	"math"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/stats/series"
)

// Transient is the cross-check of steady state within the last round before an occasion: the part of its start that
// MSER-5 (White, Cobb and Spratt 2000) would leave out.
type Transient struct {
	Round int `json:"round"` // from 1
	// Steps counts the time steps of the round, each of StepNs; Truncate of them are a transient.
	Steps    int   `json:"steps"`
	StepNs   int64 `json:"stepNs"`
	Truncate int   `json:"truncate"`
	// Steady is false if more than half of the round is a transient: it has no steady end.
	Steady bool `json:"steady"`
}

// String is the transient in words.
func (t *Transient) String() string {
	if t == nil {
		return "–"
	}
	seconds := func(n int) string { return fmt.Sprintf("%.3g s", float64(n)*float64(t.StepNs)/1e9) }
	if !t.Steady {
		return fmt.Sprintf("no steady end in %s", seconds(t.Steps))
	}
	return fmt.Sprintf("steady after %s of %s", seconds(t.Truncate), seconds(t.Steps))
}

// transientOf judges the time steps of a response in one bundle; nil: it has no distributions over time, or too few.
func transientOf(b *bundle.Bundle, response string) (*Transient, error) {
	queries, err := Responses([]string{response})
	if err != nil {
		return nil, err
	}
	data, err := dataset.Read(b)
	if err != nil {
		return nil, err
	}
	values, step := stepsOf(data, queries[0])
	if len(values) < 2*series.Batch*series.Batch {
		return nil, nil
	}
	n, steady := series.MSER5(values)
	return &Transient{Steps: len(values), StepNs: step, Truncate: n, Steady: steady}, nil
}

// stepsOf are the values of a response's metric in each time step, of all instances together: the number of I/Os of a
// rate, else the mean latency. Steps without an I/O have the rate 0, and no latency. The last step may be incomplete
// and is left out.
func stepsOf(data *dataset.Data, q expr.Query) (values []float64, step int64) {
	count, sum := map[int64]float64{}, map[int64]float64{}
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, h := range data.Slices {
		if h.Action != q.Metric.Action || h.Metric != q.Metric.Name || h.To <= h.From {
			continue
		}
		if step == 0 {
			step = int64(h.To - h.From)
		}
		at := int64(math.Round(float64(h.From) / float64(step)))
		first, last = min(first, at), max(last, at)
		count[at] += float64(h.Hist.N())
		sum[at] += float64(h.Hist.Sum())
	}
	if step == 0 || last-first > maxSteps {
		return nil, 0
	}
	rate := q.Func == expr.Rate || q.Func == expr.IOPS || q.Func == expr.Throughput
	for at := first; at < last; at++ {
		switch {
		case rate:
			values = append(values, count[at])
		case count[at] > 0:
			values = append(values, sum[at]/count[at])
		}
	}
	return values, step
}

// maxSteps bounds the steps of a round: a day of seconds.
const maxSteps = 86_400
