package parser

import (
	"math"
	"path"
	"slices"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The metrics that all tests of sysbench have. They have the values that it prints.
var (
	sbMin     = timeOf("latency.min", metric.Least, "least latency as the report has it")
	sbAverage = timeOf("latency.average", metric.Level, "mean latency as the report has it")
	sbMax     = timeOf("latency.max", metric.Greatest, "greatest latency as the report has it")
	sbP95     = timeOf("latency.p95", metric.Statistic, "95th percentile as the report has it, and of each interval")
	sbP99     = timeOf("latency.p99", metric.Statistic, "99th percentile as the report has it, and of each interval")

	// sbTotalTime, sbEvents and sbSum are figures of the report that are not metrics of all tests.
	sbTotalTime = timeOf("time", metric.Level, "")
	sbEvents    = countOf("events", "reads, writes and fsyncs of all threads")
	sbSum       = timeOf("sum", metric.Quantity, "")
)

// sbTest is what differs between the tests of sysbench.
type sbTest struct {
	metrics []metric.Declaration
	event   metric.Declaration // the latency
	lines   []linePattern[*sysbench]
}

// read reads the stdout (*.txt) of sysbench 1.0: its report, the intermediate reports (--report-interval) and the
// histogram (--histogram), and the wall clock of its start in Unix seconds (*.start).
//
// A latency counts from the start of an event, and with --rate from the time at which the event generator queued it,
// so that it includes the wait for a thread: the basis is "service" or "response". The other view does not exist. The
// histogram has the middles of buckets that are 1.8 % wide, printed to a µs.
func (test *sbTest) read(in Input) (Result, error) {
	s := &sysbench{test: test, work: work{in: in, file: "stdout"}, began: in.Started, current: sbReport{}}
	return s.run("sysbench", "there is no stdout of it: name its file (*.txt) among the outputs", s.read, s.results)
}

// sysbench is the work on one container's files.
type sysbench struct {
	work
	test         *sbTest
	noPercentile bool    // --percentile=0
	rate         bool    // --rate was given
	report       bool    // complete
	began        op.Time // when it started
	queue        float64 // events that waited for a thread at the last intermediate report

	current     sbReport   // that is read
	reports     []sbReport // complete ones: of checkpoints, and the last
	checkpoints int        // as sysbench announces them

	length, events, sum float64 // of all reports: seconds, and the sum of latencies in ns
	percent, percentile float64 // %, ms
	middles             []float64
	counts              []int64
	last, step          float64 // seconds: the end of the interval before, the length of the first
}

// sbReport has the figures of a report of the time since the one before, by metric.
type sbReport map[string]float64

// length is the time from the start of the run to the end of the report in seconds.
func (r sbReport) length() float64 { return r[sbTotalTime.Name] / 1e9 }

// maxSysbench is the limit of the stdout: a line of 100 bytes each second of a week.
const maxSysbench = 64 << 20

func (s *sysbench) read() (bool, error) {
	var texts []string
	err := s.walk(func(name string) error {
		text, _, err := s.text(name, maxSysbench)
		if path.Ext(name) == ".start" {
			s.began = s.in.began(string(text))
		} else {
			texts = append(texts, string(text))
		}
		return err
	}, ".txt", ".start")
	for _, text := range texts { // after the start is known
		for row := range rows(text) {
			if !matched(s, s.test.lines, row) && !matched(s, sbLines, row) {
				s.leave(row)
			}
		}
	}
	return len(texts) > 0, err
}

// sbLines are the lines of each test. Those that are left out have no figures, or are the settings that sysbench
// repeats, the fairness of threads and intermediate reports of another form.
var sbLines = []linePattern[*sysbench]{
	{re(`^([\d.]+) \|\**\s+(\d+)$`), func(s *sysbench, m []string) {
		s.middles, s.counts = append(s.middles, numberOf(m[1])), append(s.counts, int64(numberOf(m[2])))
	}},
	sbFigures(`^total number of events:\s+(\d+)$`, sbEvents),
	sbFigures(`^min:\s+([\d.]+)$`, sbMin),
	sbFigures(`^avg:\s+([\d.]+)$`, sbAverage),
	sbFigures(`^max:\s+([\d.]+)$`, sbMax),
	sbFigures(`^sum:\s+([\d.]+)$`, sbSum),
	{re(`^total time:\s+([\d.]+)s$`), func(s *sysbench, m []string) { s.figure(sbTotalTime, numberOf(m[1])*1e9) }},
	{re(`^(\d+)th percentile:\s+([\d.]+)$`), func(s *sysbench, m []string) {
		s.percent, s.percentile = numberOf(m[1]), numberOf(m[2])
		s.figure(sbPercentiles[m[1]], math.Round(s.percentile*ms))
	}},
	{re(`^\[ [\d.]+s \] Checkpoint report:$`), func(s *sysbench, _ []string) { s.checkpoints++ }},
	{re(`^FATAL: (.*)$`), func(s *sysbench, m []string) { s.fail(m[1]) }},
	{re(`^percentile stats: {15}disabled$`), func(s *sysbench, _ []string) { s.noPercentile = true }},
	{re(`^Target transaction rate: \d+/sec$`), func(s *sysbench, _ []string) { s.rate = true }},
	{re(`^$|^\[ |^(sysbench [\d.]+|Running the test|Number of threads: |Report (intermediate|checkpoint)|` +
		`Initializing |Threads started|Extra file open|\d+ files, |[\d.]+[KMGT]?i?B total file size|` +
		`Block size |Number of IO requests|Read/Write ratio|Periodic FSYNC|Calling fsync|Using |Doing |File operations:|` +
		`Throughput:|General statistics:|Latency \(ms\):|Threads fairness:|events \(avg/stddev\)|` +
		`execution time \(avg/stddev\)|Latency histogram|value  -+ distribution|SQL statistics:|queries performed:|` +
		`total:\s+\d+$|Forcing shutdown|WARNING: |ALERT: |cnsbench: |percentile stats: |Time limit exceeded)`), nil},
}

func sbFigures(pattern string, metrics ...metric.Declaration) linePattern[*sysbench] {
	return figureLine[*sysbench](pattern, inMs, metrics...)
}

// sbInterval is a line of an intermediate report. Its first group is the end in seconds; the others are of metrics.
func sbInterval(pattern string, metrics ...metric.Declaration) linePattern[*sysbench] {
	return linePattern[*sysbench]{re(pattern), func(s *sysbench, m []string) { s.values(m, metrics) }}
}

// sbPercentiles are the percentiles that are metrics, by percent.
var sbPercentiles = map[string]metric.Declaration{"95": sbP95, "99": sbP99}

var sbLatency = re(`\(ms,(\d+)%\): ([\d.]+)`)

// figure takes a figure of the report that is read, which ends with the sum.
func (s *sysbench) figure(of metric.Declaration, v float64) {
	if _, known := s.current[of.Name]; !known {
		s.current[of.Name] = v
	}
	if of.Name == sbSum.Name {
		s.reports, s.current = append(s.reports, s.current), sbReport{}
	}
}

// results adds the metrics and warnings.
func (s *sysbench) results() {
	s.whole()
	s.unread.warn(&s.res)
	if s.report {
		s.expect()
	}
	s.judge()
	s.latency()
}

// whole puts the reports together: those of checkpoints (--report-checkpoints) and the last are each of the time since
// the one before. Rates are weighted by that time, the mean latency by the events; percentiles cannot be put together.
func (s *sysbench) whole() {
	s.report = len(s.reports) > s.checkpoints
	before := 0.0
	for i, r := range s.reports {
		if r.length() <= before {
			s.warn("figuresMissing", "report %d of %d has no total time, or not a later one: rates are wrong", i+1,
				len(s.reports))
		}
		before = r.length()
	}
	if len(s.reports) == 0 { // it is cut off
		s.reports = append(s.reports, s.current)
	}
	for _, r := range s.reports {
		s.length, s.events, s.sum = r.length(), s.events+r[sbEvents.Name], s.sum+r[sbSum.Name]
	}
	if n := len(s.reports); n > 1 {
		s.warn("sysbenchCheckpoints", "%d reports (--report-checkpoints) are put together: percentiles of the whole are "+
			"unknown", n)
	}
	for _, d := range s.test.metrics {
		if v, ok := s.combined(d); ok {
			s.scalar(d, v)
		}
	}
}

// combined returns a figure over all reports, as its kind says.
func (s *sysbench) combined(of metric.Declaration) (v float64, ok bool) {
	var weights, before float64
	for i, r := range s.reports {
		x, has := r[of.Name]
		if !has || len(s.reports) == 1 {
			return x, has
		}
		long := r.length() - before
		before = r.length()
		switch of.Kind {
		case metric.Quantity:
			v, weights = v+x, 1
		case metric.Rate:
			v, weights = v+x*long, weights+long
		case metric.Level:
			v, weights = v+x*r[sbEvents.Name], weights+r[sbEvents.Name]
		case metric.Least:
			if v, weights = min(v, x), 1; i == 0 {
				v = x
			}
		case metric.Greatest:
			v, weights = max(v, x), 1
		}
	}
	return v / weights, weights > 0
}

// expect checks that the report has the figures of its test. Of percentiles it has one at most.
func (s *sysbench) expect() {
	var want []metric.Declaration
	for _, d := range s.test.metrics {
		if d.Kind != metric.Statistic && d.Kind != metric.Distribution && d != sbQueue {
			want = append(want, d)
		}
	}
	s.res.expect(want...)
	if len(s.reports) == 1 && s.percent == 0 && !s.noPercentile {
		s.res.expect(sbP95)
	}
}

// values adds the values of an intermediate report, which covers the time since the one before. Its percentile is a
// metric if it is the 95th or the 99th, in ms.
func (s *sysbench) values(m []string, metrics []metric.Declaration) {
	end := numberOf(m[1])
	if end <= s.last || end > maxRunSeconds {
		return
	}
	if s.step == 0 {
		s.step = end
	}
	for i, of := range metrics {
		s.point(of, s.last, end-s.last, inMs.value(of, numberOf(m[i+2])))
	}
	if l := sbLatency.FindStringSubmatch(m[0]); l != nil {
		s.point(sbPercentiles[l[1]], s.last, end-s.last, math.Round(numberOf(l[2])*ms))
	}
	s.last = end
}

// queued takes the length of the queue at the end of an interval.
func (s *sysbench) queued(m []string) {
	if s.last > 0 && numberOf(m[1]) == s.last {
		s.queue = numberOf(m[2])
		s.point(sbQueue, s.last-s.step, s.step, s.queue)
	}
}

// point adds a value of an interval that begins at a number of seconds since the start, if the test has its metric.
func (s *sysbench) point(of metric.Declaration, at, long, v float64) {
	if slices.Contains(s.test.metrics, of) {
		s.interval(of, inSeconds(s.step), s.began+inSeconds(at), inSeconds(long), v)
	}
}

func (s *sysbench) judge() {
	switch {
	case !s.report:
		s.warn("sysbenchTruncated", "sysbench ended before its report%s", s.because())
	case s.failed != "":
		s.warn("sysbenchError", "sysbench reported an error%s", s.because())
	}
	if s.queue > s.events/100 && s.report {
		s.warn("sysbenchQueued", "%.0f events still waited for a thread at the last intermediate report: they have no "+
			"latency, and more were due than were done", s.queue)
	}
}

// latency makes the histogram, with the sum, least and greatest latency of the report.
func (s *sysbench) latency() {
	if len(s.counts) == 0 || !s.report {
		return
	}
	h := hist.New()
	least, _ := s.res.value(sbMin)
	most, _ := s.res.value(sbMax)
	var n int64
	for i, middle := range s.middles {
		n += s.counts[i]
		if err := h.RecordN(int64(min(max(middle*ms, least), max(least, most))), s.counts[i]); err != nil {
			s.warn("latencyDoubtful", "%v", err)
			return
		}
	}
	switch {
	case float64(n) != s.events && len(s.reports) > 1:
		s.warn("sysbenchCheckpoints", "the histogram has %d of %.0f events, those since the last checkpoint: it is left out",
			n, s.events)
		return
	case float64(n) != s.events:
		s.warn("latencyDoubtful", "the histogram has %d events, the report %.0f", n, s.events)
	case s.sum >= math.MaxInt64:
		s.warn("latencyDoubtful", "the sum of all latencies overflows")
	default:
		// The printed least and greatest have two decimals of a ms, and may round beyond the mean.
		mean := s.sum / float64(max(1, n))
		least, most = min(least, math.Floor(mean)), max(most, math.Ceil(mean))
		if err := h.SetExact(int64(s.sum), int64(least), int64(most)); err != nil {
			s.warn("latencyDoubtful", "%v", err)
		}
		s.agree(n)
	}
	if n == 0 {
		return
	}
	basis := "service"
	if s.rate {
		basis = "response"
	}
	s.total(s.test.event, basis, s.began, s.began+inSeconds(max(s.length, 1e-3)), h)
}

// agree compares the percentile that is printed with that of the histogram. sysbench rounds to the nearest rank.
func (s *sysbench) agree(n int64) {
	if s.percent == 0 {
		return
	}
	rank, seen := math.Floor(float64(n)*s.percent/100+0.5), int64(0)
	for i, c := range s.counts {
		if seen += c; float64(seen) >= rank {
			if math.Abs(s.middles[i]-s.percentile) > 0.0056 {
				s.warn("latencyDoubtful", "the percentile %v is printed as %.2f ms, the histogram gives %.3f ms", s.percent,
					s.percentile, s.middles[i])
			}
			return
		}
	}
}
