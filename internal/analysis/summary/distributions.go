package summary

import (
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Distribution has durations counted by other components over the whole run. Quantiles
// are buckets.
type Distribution struct {
	Source string `json:"source"`
	Name   string `json:"name"`
	How    string `json:"how"`
	N      int64  `json:"n"`
	MeanNs *int64 `json:"meanNs"` // nil: unknown
	P50    Within `json:"p50"`
	P99    Within `json:"p99"`
}

// TotalNs is the sum of all durations; 0 if unknown.
func (d *Distribution) TotalNs() int64 {
	if d.MeanNs == nil {
		return 0
	}
	return *d.MeanNs * d.N
}

// Within is a bucket: more than AboveNs, at most UpToNs (nil: unbounded).
type Within struct {
	AboveNs int64  `json:"aboveNs"`
	UpToNs  *int64 `json:"upToNs"`
}

// String formats the bucket: "5 ms – 10 ms", "> 10 s", or "–" if unknown.
func (w Within) String() string {
	switch {
	case w.UpToNs == nil && w.AboveNs == 0:
		return "–"
	case w.UpToNs == nil:
		return "> " + units.Duration(float64(w.AboveNs))
	case w.AboveNs == 0:
		return "≤ " + units.Duration(float64(*w.UpToNs))
	}
	return units.Duration(float64(w.AboveNs)) + " – " + units.Duration(float64(*w.UpToNs))
}

// distributions converts those of run.json.
func distributions(all []op.Distribution) []Distribution {
	var list []Distribution
	for _, d := range all {
		s := Distribution{Source: d.Source, Name: d.Name, How: d.How, N: d.N, P50: within(d, 0.5), P99: within(d, 0.99)}
		if d.SumNs > 0 && d.N > 0 {
			s.MeanNs = new(d.SumNs / d.N)
		}
		list = append(list, s)
	}
	return list
}

// within finds the bucket of the value of rank ⌈q·n⌉.
func within(d op.Distribution, q float64) Within {
	if d.N == 0 {
		return Within{}
	}
	rank := hist.Rank(q, d.N)
	var above, seen int64
	for _, b := range d.Buckets {
		if seen += b.N; seen >= rank {
			return Within{above, new(b.UpToNs)}
		}
		above = b.UpToNs
	}
	return Within{AboveNs: above}
}
