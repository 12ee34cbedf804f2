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
	total       *pgSecond
}

// pgSecond has the transactions that ended in one second.
type pgSecond struct {
	response, service        *hist.Histogram
	committed, failed, skips int64
}

func newPgSecond() *pgSecond { return &pgSecond{response: hist.New(), service: hist.New()} }

func (t *transactions) add(r pgRow) {
	i := (r.endedUnixNano - t.start) / int64(time.Second)
	if r.endedUnixNano < t.start || i >= maxCells {
		t.outside++
		return
	}
	t.last = max(t.last, r.endedUnixNano)
	s := t.seconds[i]
	if s == nil {
		s = newPgSecond()
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
func (t *transactions) results(p *pgbench) {
	if len(t.seconds) == 0 {
		return
	}
	at, long := p.in.clock(t.start), op.Time(t.last-t.start)
	p.res.Totals = t.histograms(p.res.Totals, t.total, at, at+long)
	for _, i := range slices.Sorted(maps.Keys(t.seconds)) {
		from := at + op.Time(i)*aSecond
		p.res.Slices = t.histograms(p.res.Slices, t.seconds[i], from, min(from+aSecond, at+long+1))
	}
	for i := op.Time(0); i <= long/aSecond; i++ { // a second without any is a point too
		covered := min(long-i*aSecond, aSecond)
		if covered < aSecond/10 && i > 0 {
			break // too short for a rate
		}
		s := t.seconds[int64(i)]
		if s == nil {
			s = &pgSecond{}
		}
		rate := func(of metric.Declaration, n, all int64) {
			if all > 0 {
				p.interval(of, aSecond, at+i*aSecond, aSecond, float64(n)*1e9/float64(max(1, covered)))
			}
		}
		rate(pgTPS, s.committed, 1)
		rate(perSecond(pgFailed), s.failed, t.total.failed)
		rate(perSecond(pgSkipped), s.skips, t.total.skips)
	}
	t.compare(p)
}

// perSecond is the rate of a count.
func perSecond(d metric.Declaration) metric.Declaration {
	d.Unit, d.Kind = metric.PerSecond, metric.Rate
	return d
}

func (t *transactions) histograms(list []metric.Histogram, s *pgSecond, from, to op.Time) []metric.Histogram {
	if s.committed == 0 {
		return list
	}
	list = append(list, metric.Histogram{Metric: pgResponse.Name, Unit: pgResponse.Unit, From: from, To: to,
		Hist: s.response})
	if t.scheduled {
		list = append(list, metric.Histogram{Metric: pgService.Name, Unit: pgService.Unit, From: from, To: to,
			Hist: s.service})
	}
	return list
}

// compare compares the counts of the log with those of the report, and takes their place where there is none.
func (t *transactions) compare(p *pgbench) {
	for _, c := range []struct {
		of metric.Declaration
		n  int64
	}{{pgOK, t.total.committed}, {pgFailed, t.total.failed}, {pgSkipped, t.total.skips}} {
		switch v, ok := p.res.value(c.of); {
		case ok && v != float64(c.n):
			p.warn("pgbenchDiffers", "%s: the report has %.0f, the log %d", c.of.Meaning, v, c.n)
		case !ok && !p.reported() && (c.n > 0 || c.of == pgOK):
			p.scalar(c.of, float64(c.n))
		}
	}
	if seconds := float64(t.last-t.start) / 1e9; !p.reported() && seconds > 0 {
		p.scalar(pgTPS, float64(t.total.committed)/seconds)
	}
}
