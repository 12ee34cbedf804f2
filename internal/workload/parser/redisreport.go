package parser

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// redisReport is what redis-benchmark prints when a test is over.
type redisReport struct {
	requests int64
	rps      float64
	edges    []redisCount
	complete bool
	// In ns.
	average, least, p50, p95, p99, most int64
}

// redisCount says how many requests took at most ns; atLeast, or more.
type redisCount struct {
	ns, requests int64
	atLeast      bool
}

func (c redisCount) compare(d redisCount) int {
	return cmp.Or(cmp.Compare(c.ns, d.ns), cmp.Compare(c.requests, d.requests))
}

// addEdge adds a line of a distribution; µs and requests are digits.
func (p *redisReport) addEdge(us, requests string) {
	t, err := strconv.ParseInt(us, 10, 64)
	n, err2 := strconv.ParseInt(requests, 10, 64)
	if err == nil && err2 == nil && t < maxRedisNumber && n < maxRedisNumber && n > 0 {
		p.edges = append(p.edges, redisCount{ns: t * int64(time.Microsecond), requests: n})
	}
}

// maxRedisNumber bounds µs and counts, so that their sums fit an int64 of ns.
const maxRedisNumber = 1 << 31

// setSummary reads average, minimum, 50, 95 and 99 % and maximum in ms.
func (p *redisReport) setSummary(fields []string) {
	for i, to := range []*int64{&p.average, &p.least, &p.p50, &p.p95, &p.p99, &p.most} {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil || v > maxRedisNumber/1000 {
			return
		}
		*to = int64(math.Round(v * ms))
	}
	p.complete = true
}

// took is how long the test ran, to the ms of redis-benchmark; 0: unknown.
func (p *redisReport) took() op.Time {
	if s := float64(p.requests) / p.rps; p.rps > 0 && s < 1e9 {
		return op.Time(s * 1e9)
	}
	return 0
}

var errRedisDistribution = errors.New("the lines of the distribution contradict each other")

// histogram returns the distribution: each request has the least latency that is known to be no less than its own.
func (p *redisReport) histogram() (*hist.Histogram, error) {
	edges := slices.Clone(p.edges)
	slices.SortFunc(edges, redisCount.compare)
	if len(edges) == 0 {
		return nil, errRedisDistribution
	}
	total := edges[len(edges)-1].requests
	for _, q := range []struct {
		share float64
		ns    int64
	}{{0.5, p.p50}, {0.95, p.p95}, {0.99, p.p99}} {
		rank := int64(q.share*float64(total) + 0.5) // as redis-benchmark rounds it
		edges = append(edges, redisCount{q.ns, max(1, rank), true})
	}
	slices.SortFunc(edges, redisCount.compare)
	h := hist.New()
	var counted int64
	for _, e := range edges {
		if e.requests < counted && !e.atLeast || e.requests > total {
			return nil, errRedisDistribution
		}
		if err := h.RecordN(e.ns, max(0, e.requests-counted)); err != nil {
			return nil, err
		}
		counted = max(counted, e.requests)
	}
	average := min(max(p.average, p.least), p.most) // it is rounded
	if average > 0 && h.N() > math.MaxInt64/average {
		return nil, errRedisDistribution
	}
	return h, h.SetExact(average*h.N(), p.least, p.most)
}

// redisTest has the runs of one test.
type redisTest struct {
	name     string
	rates    int // points of its rate
	total    *hist.Histogram
	from, to op.Time
	reports  int
	rps      float64 // of the only report, or of a run without one
	requests int64
	took     op.Time
	summary  map[string]float64 // in ms, by the name of the figure
}

// add adds a run, with or without its report.
func (t *redisTest) add(r *redis, u *redisRun, complete bool) {
	t.addRates(r, u, complete)
	if !complete {
		if t.reports == 0 && finite(u.overall) {
			t.rps = u.overall
		}
		for name, v := range u.summary {
			if t.summary == nil {
				t.summary = map[string]float64{}
			}
			t.summary[name] = max(t.summary[name], v)
		}
		return
	}
	took := u.report.took()
	if took == 0 {
		r.warn("outputUnread", "the test %s has no rate: it took less than a ms", t.name)
	} else {
		t.requests, t.took, t.rps = t.requests+u.report.requests, t.took+took, u.report.rps
		t.reports++
	}
	h, err := u.report.histogram()
	if err != nil {
		r.warn("outputUnread", "the report of the test %s: %v", t.name, err)
		return
	}
	if u.report.most >= redisLongest {
		r.warn("redisLatencyCapped", "the test %s has latencies of 3 s or more, which redis-benchmark counts as 3 s", t.name)
	}
	if t.total == nil {
		t.total, t.from = hist.New(), u.start
	}
	t.to = max(t.to, u.start+max(took, 1))
	if err := t.total.Merge(h); err != nil {
		r.warn("outputUnread", "the reports of the test %s: %v", t.name, err)
		return
	}
	r.res.Slices = append(r.res.Slices, metric.Histogram{Metric: t.name, Unit: metric.Nanoseconds, From: u.start,
		To: u.start + max(took, 1), Hist: h})
}

// redisLongest is the longest latency that redis-benchmark counts, less a bucket of its histogram.
const redisLongest = int64(2998 * time.Millisecond)

// addRates adds the points of a run. Each line of progress is printed at least redisTick after the one before; how much
// later follows from their number in a run of known length.
func (t *redisTest) addRates(r *redis, u *redisRun, complete bool) {
	if u.threads || len(u.rates) < 2 || t.rates+len(u.rates) > maxCells {
		return
	}
	step := redisTick
	if complete {
		step = max(step, u.report.took()/op.Time(len(u.rates)))
	}
	t.rates += len(u.rates) - 1
	for i, v := range u.rates[1:] {
		r.interval(redisRate(t.name), redisTick, u.start+op.Time(i)*step, redisTick, v)
	}
}

// results adds the metrics of a test.
func (t *redisTest) results(r *redis) {
	rate := redisRate(t.name)
	if t.reports > 1 {
		t.rps = float64(t.requests) * 1e9 / float64(t.took)
	}
	if t.rps > 0 && finite(t.rps) {
		r.scalar(rate, t.rps)
	}
	for _, f := range redisSummaries {
		if v, ok := t.summary[f.name]; ok {
			r.scalar(redisSummaryOf(t.name, f), math.Round(v*ms))
		}
	}
	if t.total != nil {
		r.total(redisLatency(t.name), "", t.from, t.to, t.total)
	}
}
