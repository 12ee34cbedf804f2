package web

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The files by which a bundle and a study are known.
const (
	runFile   = "run.json"
	studyFile = "study.json"
)

// Card is what the list shows of a finished run besides its entry.
type Card struct {
	ID       string   `json:"id"`
	Headline []string `json:"headline"`
	Spark    *Spark   `json:"spark,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// Spark is a figure over the time of a run, in equal steps; null where there is no value. A step is not shorter than
// those of the figure.
type Spark struct {
	Label  string     `json:"label"`
	Values []*float64 `json:"values"`
}

// maxSpark is the number of values of a Spark.
const maxSpark = 48

// cards keeps the cards of closed bundles, each until its bundle changes. One is computed at a time.
type cards struct {
	mu   sync.Mutex
	made map[string]card
}

type card struct {
	at time.Time // when run.json was changed
	Card
}

// of returns the card of the bundle in dir.
func (s *cards) of(id, dir string) Card {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := os.Stat(filepath.Join(dir, runFile))
	if err == nil {
		if old, ok := s.made[id]; ok && old.at.Equal(st.ModTime()) {
			return old.Card
		}
	}
	c, keep, err := makeCard(dir)
	if err != nil {
		c.Error = err.Error()
	}
	c.ID = id
	if keep && st != nil {
		if s.made == nil {
			s.made = map[string]card{}
		}
		s.made[id] = card{st.ModTime(), c}
	}
	return c
}

// makeCard reads a bundle; keep says that it will not change.
func makeCard(dir string) (c Card, keep bool, err error) {
	c.Headline = []string{}
	b, err := bundle.Open(dir)
	if err != nil {
		return c, false, err
	}
	sum, err := summary.Make(b)
	if err != nil {
		return c, b.Complete, err
	}
	c.Headline = sum.Headline
	c.Spark, err = sparkOf(b, sum.EndedAt)
	return c, b.Complete, err
}

// sparkOf is the throughput of the tools over the run, or the response times of operations where no tool has a series.
func sparkOf(b *bundle.Bundle, end op.Time) (*Spark, error) {
	if !end.Known() || end <= 0 {
		return nil, nil
	}
	spark := &Spark{Label: "I/O operations per second of the tools"}
	bins, err := throughput(b, end)
	if len(bins) == 0 && err == nil {
		spark.Label = "longest response of operations, in seconds"
		bins, err = responses(b, end)
	}
	if err != nil {
		return nil, err
	}
	some := false
	for i := range bins {
		var v *float64
		if bins[i].n > 0 {
			v, some = &bins[i].sum, true
		}
		spark.Values = append(spark.Values, v)
	}
	if !some {
		return nil, nil
	}
	return spark, nil
}

// bin is the sum of n values.
type bin struct {
	sum float64
	n   int
}

// place is the bin of an instant.
func place(at, end op.Time, bins int) int {
	return min(max(int(float64(at)/float64(end)*float64(bins)), 0), bins-1)
}

// throughput adds up the rates of all series: the values of one in a bin are averaged. It is empty without a series.
func throughput(b *bundle.Bundle, end op.Time) ([]bin, error) {
	series := map[string][]bundle.Series{}
	steps := maxSpark
	for x, err := range b.Series() {
		if err != nil {
			return nil, err
		}
		if x.Unit == "1/s" && strings.HasSuffix(x.Metric, "ops") {
			key := x.Instance + "\x00" + x.Metric
			series[key] = append(series[key], x)
			if x.Step > 0 {
				steps = min(steps, max(1, int(int64(end)/x.Step)))
			}
		}
	}
	if len(series) == 0 {
		return nil, nil
	}
	all := make([]bin, steps)
	for _, parts := range series {
		of := make([]bin, steps)
		for _, x := range parts {
			for _, p := range x.Points {
				at := &of[place(p.At, end, steps)]
				at.sum, at.n = at.sum+p.Value, at.n+1
			}
		}
		for i, x := range of {
			if x.n > 0 {
				all[i].sum, all[i].n = all[i].sum+x.sum/float64(x.n), 1
			}
		}
	}
	return all, nil
}

// responses has the longest response time of the operations that ended in each bin, in seconds.
func responses(b *bundle.Bundle, end op.Time) ([]bin, error) {
	all := make([]bin, maxSpark)
	for o, err := range b.Ops() {
		if err != nil {
			return nil, err
		}
		if ns, ok := o.Response(); ok {
			at := &all[place(o.Ended, end, maxSpark)]
			at.sum, at.n = max(at.sum, float64(ns)/1e9), 1
		}
	}
	return all, nil
}
