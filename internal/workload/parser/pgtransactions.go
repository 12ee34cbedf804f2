package parser

import (
	"maps"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// transactions counts the rows of pgbench's logs by second, from the start of the first transaction.
type transactions struct {
	start, last int64 // Unix ns
	scheduled   bool
	seconds     map[int64]*pgSecond
	outside     int64 // rows before start, or later than the last second that is counted
	total       pgSecond
}

// pgSecond has the transactions that ended in one second.
type pgSecond struct {
	response, service        *hist.Histogram
	committed, failed, skips int64
}

func newTransactions(start int64, scheduled bool) *transactions {
	return &transactions{start: start, last: start, scheduled: scheduled, seconds: map[int64]*pgSecond{},
		total: newPgSecond()}
}

func newPgSecond() pgSecond { return pgSecond{response: hist.New(), service: hist.New()} }

func (t *transactions) add(r pgRow) {
	i := (r.endedUnixNano - t.start) / int64(time.Second)
	if r.endedUnixNano < t.start || i >= maxCells {
		t.outside++
		return
	}
	t.last = max(t.last, r.endedUnixNano)
	s := t.seconds[i]
	if s == nil {
		one := newPgSecond()
		s = &one
		t.seconds[i] = s
	}
	s.add(r)
	t.total.add(r)
}

func (s *pgSecond) add(r pgRow) {
	switch r.outcome {
	case "":
		s.committed++
		_ = s.response.Record(1000 * r.elapsed) // not negative
		_ = s.service.Record(1000 * (r.elapsed - r.lag))
	case "skipped":
		s.skips++
	default:
		s.failed++
	}
}

// results adds the histograms, the series, and without a report the counts.
func (t *transactions) results(p *pgbench) error {
	if len(t.seconds) == 0 {
		return nil
	}
	at := p.in.clock(t.start)
	p.res.Totals = t.histograms(p.res.Totals, &t.total, at, at+op.Time(t.last-t.start))
	for _, i := range slices.Sorted(maps.Keys(t.seconds)) {
		from := at + op.Time(i)*op.Time(time.Second)
		to := min(from+op.Time(time.Second), at+op.Time(t.last-t.start)+1)
		p.res.Slices = t.histograms(p.res.Slices, t.seconds[i], from, to)
	}
	tps := pgTPS.Series(int64(time.Second))
	failed, skipped := perSecond(pgFailed), perSecond(pgSkipped)
	empty := &pgSecond{}
	for i := int64(0); i <= (t.last-t.start)/int64(time.Second); i++ { // a second without any is a point too
		covered := min(t.last-t.start-i*int64(time.Second), int64(time.Second))
		if covered < int64(time.Second)/10 && i > 0 {
			break // too short for a rate
		}
		s := t.seconds[i]
		if s == nil {
			s = empty
		}
		point := func(n int64) metric.Point {
			return metric.Point{At: at + op.Time(i)*op.Time(time.Second), Value: float64(n) * 1e9 / float64(max(1, covered))}
		}
		tps.Points = append(tps.Points, point(s.committed))
		failed.Points = append(failed.Points, point(s.failed))
		skipped.Points = append(skipped.Points, point(s.skips))
	}
	p.res.Series = append(p.res.Series, tps)
	if t.total.failed > 0 {
		p.res.Series = append(p.res.Series, failed)
	}
	if t.total.skips > 0 {
		p.res.Series = append(p.res.Series, skipped)
	}
	t.compare(p)
	return nil
}

// perSecond is the series of a count.
func perSecond(d metric.Declaration) metric.Series {
	d.Unit, d.Kind = metric.PerSecond, metric.Rate
	return d.Series(int64(time.Second))
}

func (t *transactions) histograms(list []metric.Histogram, s *pgSecond, from, to op.Time) []metric.Histogram {
	if s.committed == 0 {
		return list
	}
	add := func(d metric.Declaration, h *hist.Histogram) {
		list = append(list, metric.Histogram{Metric: d.Name, Unit: d.Unit, From: from, To: to, Hist: h})
	}
	add(pgResponse, s.response)
	if t.scheduled {
		add(pgService, s.service)
	}
	return list
}

// compare compares the counts of the log with those of the report, and takes their place where there is none.
func (t *transactions) compare(p *pgbench) {
	for _, c := range []struct {
		of metric.Declaration
		n  int64
	}{{pgOK, t.total.committed}, {pgFailed, t.total.failed}, {pgSkipped, t.total.skips}} {
		i := slices.IndexFunc(p.res.Scalars, func(s metric.Scalar) bool { return s.Metric == c.of.Name })
		switch {
		case i >= 0 && p.res.Scalars[i].Value != float64(c.n):
			p.warn("pgbenchDiffers", "%s: the report has %.0f, the log %d", c.of.Meaning, p.res.Scalars[i].Value, c.n)
		case i < 0 && !p.report && (c.n > 0 || c.of.Name == pgOK.Name):
			p.res.Scalars = append(p.res.Scalars, c.of.Scalar(float64(c.n)))
		}
	}
	if seconds := float64(t.last-t.start) / 1e9; !p.report && seconds > 0 {
		p.res.Scalars = append(p.res.Scalars, pgTPS.Scalar(float64(t.total.committed)/seconds))
	}
}

// clock places an instant of the container's wall clock on the run's clock; without that clock it counts from the
// start of the container's work, where the first instant that is asked for is.
func (in *Input) clock(unixNano int64) op.Time {
	if in.AtWall == nil {
		return in.Started
	}
	return in.AtWall(unixNano)
}
