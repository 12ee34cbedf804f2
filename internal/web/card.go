package web

import (
	"math"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"os"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Card is what the list shows of a finished run besides its entry.
type Card struct {
	ID       string   `json:"id"`
	Headline []string `json:"headline"`
	Spark    *Spark   `json:"spark,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// Spark is a figure over the time of a run, in equal steps; null where there is no value.
type Spark struct {
	Label  string     `json:"label"`
	Values []*float64 `json:"values"`
}

// sparkSteps is the number of values of a Spark.
const sparkSteps = 48

// cards keeps the cards of closed bundles, each until its bundle changes. One is computed at a time.
type cards struct {
	mu   sync.Mutex
	made map[string]card
}

type card struct {
	at time.Time // when run.json was changed
	Card
}

// card returns the card of the bundle in dir.
func (s *Server) card(id, dir string) Card {
	s.cards.mu.Lock()
	defer s.cards.mu.Unlock()
	st, err := os.Stat(filepath.Join(dir, runFile))
	if err == nil {
		if old, ok := s.cards.made[id]; ok && old.at.Equal(st.ModTime()) {
			return old.Card
		}
	}
	c, keep, err := makeCard(dir)
	if err != nil {
		c.Error = err.Error()
	}
	c.ID = id
	if keep && st != nil {
		if s.cards.made == nil {
			s.cards.made = map[string]card{}
		}
		s.cards.made[id] = card{st.ModTime(), c}
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
	type bin struct {
		sum float64
		n   int
	}
	place := func(at op.Time) int { return min(max(int(float64(at)/float64(end)*sparkSteps), 0), sparkSteps-1) }
	// A series is a rate: its values in a bin are averaged, and the averages of all series added up.
	rates := map[string]*[sparkSteps]bin{}
	for x, err := range b.Series() {
		if err != nil {
			return nil, err
		}
		if x.Unit != "1/s" || !strings.HasSuffix(x.Metric, "iops") && !strings.HasSuffix(x.Metric, "ops") {
			continue
		}
		key := x.Instance + "\x00" + x.Metric
		if rates[key] == nil {
			rates[key] = new([sparkSteps]bin)
		}
		for _, p := range x.Points {
			at := &rates[key][place(p.At)]
			at.sum, at.n = at.sum+p.Value, at.n+1
		}
	}
	var bins [sparkSteps]bin
	for _, of := range rates {
		for i, x := range of {
			if x.n > 0 {
				bins[i].sum, bins[i].n = bins[i].sum+x.sum/float64(x.n), 1
			}
		}
	}
	spark := &Spark{Label: "I/O operations per second of the tools"}
	if len(rates) == 0 {
		spark.Label = "longest response of operations, in seconds"
		for o, err := range b.Ops() {
			if err != nil {
				return nil, err
			}
			if ns, ok := o.Response(); ok {
				at := &bins[place(o.Ended)]
				at.sum, at.n = math.Max(at.sum, float64(ns)/1e9), 1
			}
		}
	}
	some := false
	for _, x := range bins {
		var v *float64
		if x.n > 0 {
			v, some = &x.sum, true
		}
		spark.Values = append(spark.Values, v)
	}
	if !some {
		return nil, nil
	}
	return spark, nil
}
