package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// objectTruth compares the bundle of an object workload with the delays that the null server injected and logged. Each
// figure is the median over some runs, because shared hosts stop CPUs for up to 100 ms.
func objectTruth(ctx context.Context, e *env, t *table) error {
	for _, d := range []injected{
		{"GET", "25ms", func(float64) float64 { return 25 }},
		// Φ⁻¹ is √2·erf⁻¹(2q − 1).
		{"GET", "lognormal(25ms,0.3)", func(q float64) float64 { return 25 * math.Exp(0.3*math.Sqrt2*math.Erfinv(2*q-1)) }},
		{"PUT", "15ms+exp(15ms)", func(q float64) float64 { return 15 - 15*math.Log(1-q) }},
	} {
		if err := t.delays(ctx, e, d); err != nil {
			return fmt.Errorf("%s %s: %w", d.verb, d.text, err)
		}
	}
	for _, workers := range []int{2000, 16} {
		if err := t.objectStall(ctx, e, workers); err != nil {
			return fmt.Errorf("stall, %d workers: %w", workers, err)
		}
	}
	t.note("The server's times are from the last byte of a request to the hand-over of the answer; the client's service " +
		"has the network and two wake-ups more.")
	return nil
}

// injected is a distribution of the server's delay with its quantiles in ms.
type injected struct {
	verb, text string
	quantile   func(q float64) float64
}

// delays injects a distribution and compares quantiles with those of the server's log and of the distribution.
func (t *table) delays(ctx context.Context, e *env, d injected) error {
	operation, metric := get4K, "read"
	if d.verb == "PUT" {
		operation, metric = put4K, "write"
	}
	ratios, n := map[string][]float64{}, 0
	for i := range pick(e, 5, 1) {
		// The first operation of each worker connects. These are less than one in a hundred.
		l := objectLoad{workers: 128, pace: `rate="poisson(1000)"`, length: 20 * time.Second,
			operations: fmt.Sprintf(operation, 100), seed: e.seed + uint64(i)}
		err := e.open(ctx, l, metric, func(service, response bundle.HistogramSlice, b *bundle.Bundle, s *serverTruth) error {
			log := s.verbs[d.verb]
			if log == nil || log.N() != service.Hist.N() {
				return fmt.Errorf("the server's log has other %ss than the client", d.verb)
			}
			n += int(log.N())
			for _, q := range []float64{0.5, 0.9, 0.99} {
				was, _ := log.Quantile(q)
				took, _ := service.Hist.Quantile(q)
				answered, _ := response.Hist.Quantile(q)
				for _, r := range []struct {
					what string
					of   float64
				}{{"service / log", float64(took) / float64(was)}, {"response / log", float64(answered) / float64(was)},
					{"service / distribution", float64(took) / 1e6 / d.quantile(q)}} {
					what := fmt.Sprintf("%s %s: p%g, %s", d.verb, d.text, 100*q, r.what)
					ratios[what] = append(ratios[what], r.of)
				}
			}
			return nil
		}, "--delay", d.verb+"="+d.text)
		if err != nil {
			return err
		}
	}
	for _, what := range slices.Sorted(maps.Keys(ratios)) {
		median := stats.Median(ratios[what])
		t.add(n, what, percent(median), "± 2 %", math.Abs(median-1) <= 0.02)
	}
	return nil
}

// objectStall stalls the server for two seconds under an open loop, whose constant rate tells when each operation is
// due. The sum of response times must equal that of a simulated queue, even if there are too few workers to begin all
// due operations.
func (t *table) objectStall(ctx context.Context, e *env, workers int) error {
	const rate, stalled, length, at = 500, 2 * time.Second, 10 * time.Second, 4 * time.Second
	var weights, shares []float64
	n := 0
	for i := range pick(e, 5, 1) {
		l := objectLoad{workers: workers, pace: fmt.Sprintf(`rate="constant(%d)"`, rate), length: length,
			operations: fmt.Sprintf(get4K, 100), seed: e.seed + uint64(i)}
		err := e.open(ctx, l, "read", func(service, response bundle.HistogramSlice, b *bundle.Bundle, s *serverTruth) error {
			from := op.Time(s.firstUnixNs + int64(at) - b.Run.Clock.Start.UnixNano()) // on the run's clock
			var due []op.Time
			for k := op.Time(1); k < rate*op.Time(length.Seconds()); k++ {
				due = append(due, response.From+k*op.Time(time.Second)/rate)
			}
			if int(response.Hist.N()) != len(due) || response.Hist.Max() < int64(stalled) {
				return fmt.Errorf("%d of %d operations, the longest of %s", response.Hist.N(), len(due), ms(response.Hist.Max()))
			}
			base, _ := service.Hist.Quantile(0.25)
			want := 0.0
			for _, r := range simulate(due, workers, base, from, from+op.Time(stalled)) {
				want += float64(r)
			}
			n += len(due)
			weights = append(weights, float64(response.Hist.Sum())/want)
			shares = append(shares, float64(service.Hist.Sum())/float64(response.Hist.Sum()))
			return nil
		}, "--delay", "GET=2ms", "--stall-at", at.String(), "--stall-for", stalled.String())
		if err != nil {
			return err
		}
	}
	weight, what := stats.Median(weights), fmt.Sprintf("stall, %d workers: ", workers)
	t.add(n, what+"Σ of the responses / simulated", percent(weight), "± 2 %", math.Abs(weight-1) <= 0.02)
	t.info(n, what+"Σ of their service", "%.1f %% of the responses", 100*stats.Median(shares))
	return nil
}

// serverTruth has the log of the null server.
type serverTruth struct {
	firstUnixNs int64
	verbs       map[string]*hist.Histogram
}

// open runs a loop without ramps, so that client and server count the same requests, on a null server with the given
// flags, and calls do with the histograms of a metric.
func (e *env) open(ctx context.Context, l objectLoad, metric string, do func(service, response bundle.HistogramSlice,
	b *bundle.Bundle, s *serverTruth) error, flags ...string) error {
	log := filepath.Join(e.tmp, "server.jsonl")
	defer func() { _ = os.Remove(log) }() // there is none if the server did not start
	address, stop, err := e.nullServer(ctx, append(flags, "--truth", log, "--seed", strconv.FormatUint(l.seed, 10))...)
	if err != nil {
		return err
	}
	stopped := sync.OnceValue(stop)
	defer func() { warn(stopped()) }()
	l.store = nullStore(address)
	return e.objectRun(ctx, l, func(_ *process, b *bundle.Bundle) error {
		if err := stopped(); err != nil { // it writes its log in the end
			return err
		}
		s := &serverTruth{verbs: map[string]*hist.Histogram{}}
		type line struct {
			Event, Verb string
			FirstUnixNs int64
			Whole       *hist.Histogram
		}
		err := eachLine(log, func(l line) {
			if l.Event == "server" {
				s.firstUnixNs = l.FirstUnixNs
			} else {
				s.verbs[l.Verb] = l.Whole
			}
		})
		service, missing := mainOf(b, metric+".service")
		response, other := mainOf(b, metric)
		if err := errors.Join(err, missing, other); err != nil {
			return err
		}
		return do(service, response, b, s)
	})
}
