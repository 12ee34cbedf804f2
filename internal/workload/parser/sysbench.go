package parser

import (
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The metrics that all tests of sysbench have. They have the values that it prints.
var (
	sbMin     = sbLatency("min", metric.Least, "least latency as the report has it")
	sbAverage = sbLatency("average", metric.Level, "mean latency as the report has it")
	sbMax     = sbLatency("max", metric.Greatest, "greatest latency as the report has it")
	sbP95     = sbLatency("p95", metric.Statistic, "95th percentile as the report has it, and of each interval")
	sbP99     = sbLatency("p99", metric.Statistic, "99th percentile as the report has it, and of each interval")
)

func sbLatency(name string, kind metric.Kind, meaning string) metric.Declaration {
	return declare("latency."+name, metric.Nanoseconds, kind, metric.Lower, meaning)
}

// sbTest is what differs between the tests of sysbench.
type sbTest struct {
	metrics []metric.Declaration
	event   metric.Declaration // the latency
	figures []sbFigure
	// interval reads a line of an intermediate report.
	interval func(s *sysbench, row string)
}

// sbFigure is a line of the report. unit is what one printed unit is.
type sbFigure struct {
	line *regexp.Regexp
	of   metric.Declaration
	unit float64
}

// read reads the stdout (*.txt) of sysbench 1.0: its report, the intermediate reports (--report-interval) and the
// histogram (--histogram), and the wall clock of its start in Unix seconds (*.start).
//
// A latency counts from the start of an event, and with --rate from the time at which the event generator queued it,
// so that it includes the wait for a thread: the basis is "service" or "response". The other view does not exist. The
// histogram has the middles of buckets that are 1.8 % wide, printed to a µs.
func (test *sbTest) read(in Input) (Result, error) {
	s := &sysbench{test: test, work: work{in: in}}
	if err := s.read(); err != nil {
		return s.res, fmt.Errorf("sysbench: %w", err)
	}
	if !s.found {
		return s.res, errors.New("sysbench: there is no stdout of it: name its file (*.txt) among the outputs")
	}
	s.whole()
	s.unread.warn(&s.res)
	if s.report {
		s.expect()
	}
	s.judge()
	s.latency()
	for _, d := range test.metrics {
		if p := s.series[d.Name]; p != nil {
			s.res.Series = append(s.res.Series, p.all()...)
		}
	}
	return s.res, nil
}

// sysbench is the work on one container's files.
type sysbench struct {
	work
	test   *sbTest
	found  bool
	unread unreadLines
	// noPercentile: --percentile=0
	noPercentile bool
	current      sbReport // that is read
	report       bool     // complete
	rate         bool     // --rate was given
	fatal        string   // the first fatal message
	start        float64  // Unix seconds; 0: unknown
	length       float64  // seconds
	events       float64
	queue        float64 // events that waited for a thread at the last intermediate report

	block       map[string]metric.Scalar // figures of the report that is read
	reports     []sbReport               // complete ones: of checkpoints, and the last
	checkpoints int                      // as sysbench announces them

	sum, percent, percentile float64 // ms, %, ms
	middles                  []float64
	counts                   []int64
	series                   map[string]*intervals
	last                     float64 // end of the interval before, in seconds
	step                     float64 // seconds
}

// maxSysbench is the limit of the stdout: a line of 100 bytes each second of a week.
const maxSysbench = 64 << 20

func (s *sysbench) read() error {
	s.series = map[string]*intervals{}
	var texts []string
	err := s.walk(func(name string) error {
		s.found = s.found || path.Ext(name) == ".txt"
		text, _, err := s.text(name, maxSysbench)
		if path.Ext(name) == ".start" {
			s.start, _ = strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		} else {
			texts = append(texts, string(text))
		}
		return err
	}, ".txt", ".start")
	for _, text := range texts { // after the start is known
		for row := range strings.Lines(text) {
			if strings.HasSuffix(row, "\n") { // else half written
				s.readLine(strings.TrimSpace(row))
			}
		}
	}
	return err
}

// Other lines of sysbench's stdout.
var (
	sbBucket     = regexp.MustCompile(`^([\d.]+) \|\**\s+(\d+)$`)
	sbEvents     = regexp.MustCompile(`^total number of events:\s+(\d+)$`)
	sbLeast      = regexp.MustCompile(`^min:\s+([\d.]+)$`)
	sbMean       = regexp.MustCompile(`^avg:\s+([\d.]+)$`)
	sbMost       = regexp.MustCompile(`^max:\s+([\d.]+)$`)
	sb95         = regexp.MustCompile(`^95th percentile:\s+([\d.]+)$`)
	sbTotalTime  = regexp.MustCompile(`^total time:\s+([\d.]+)s$`)
	sbSum        = regexp.MustCompile(`^sum:\s+([\d.]+)$`)
	sbPercentile = regexp.MustCompile(`^(\d+)th percentile:\s+([\d.]+)$`)
	sbTarget     = regexp.MustCompile(`^Target transaction rate: \d+/sec$`)
	sbCheckpoint = regexp.MustCompile(`^\[ [\d.]+s \] Checkpoint report:$`)
	sbFatal      = regexp.MustCompile(`^FATAL: (.*)$`)
)

// sbNumber is a number of sysbench's output; 0 if it is none, or too great to be true.
func sbNumber(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v > maxDBOps {
		return 0
	}
	return v
}

func (s *sysbench) readLine(row string) {
	if m := sbBucket.FindStringSubmatch(row); m != nil {
		s.middles, s.counts = append(s.middles, sbNumber(m[1])), append(s.counts, int64(sbNumber(m[2])))
	} else if m := sbTotalTime.FindStringSubmatch(row); m != nil {
		s.current.length = sbNumber(m[1])
	} else if m := sbEvents.FindStringSubmatch(row); m != nil {
		s.current.events = sbNumber(m[1])
	} else if sbCheckpoint.MatchString(row) {
		s.checkpoints++
	} else if m := sbSum.FindStringSubmatch(row); m != nil {
		s.current.sum = sbNumber(m[1]) // the last line of the report that is read
		defer s.endReport()
	} else if m := sbFatal.FindStringSubmatch(row); m != nil && s.fatal == "" {
		s.fatal = m[1]
	} else if row == "percentile stats:               disabled" {
		s.noPercentile = true
	} else if sbTarget.MatchString(row) {
		s.rate = true
	} else if strings.HasPrefix(row, "[ ") {
		s.test.interval(s, row)
	} else if !s.known(row) {
		s.unread.add("stdout", row)
	}
	if m := sbPercentile.FindStringSubmatch(row); m != nil {
		s.percent, s.percentile = sbNumber(m[1]), sbNumber(m[2])
	}
	for _, f := range s.test.figures {
		m := f.line.FindStringSubmatch(row)
		if _, known := s.block[f.of.Name]; m == nil || known {
			continue
		}
		v := sbNumber(m[1]) * f.unit
		if f.of.Unit == metric.Nanoseconds {
			v = math.Round(v)
		}
		if s.block == nil {
			s.block = map[string]metric.Scalar{}
		}
		s.block[f.of.Name] = f.of.Scalar(v)
	}
}

// sbLeftOut are lines without figures, the settings that sysbench repeats, and the fairness of threads.
var sbLeftOut = regexp.MustCompile(`^(sysbench [\d.]+|Running the test|Number of threads: |Report (intermediate|` +
	`checkpoint)|Initializing |Threads started|Extra file open|\d+ files, |[\d.]+[KMGT]?i?B total file size|` +
	`Block size |Number of IO requests|Read/Write ratio|Periodic FSYNC|Calling fsync|Using |Doing |File operations:|` +
	`Throughput:|General statistics:|Latency \(ms\):|Threads fairness:|events \(avg/stddev\)|` +
	`execution time \(avg/stddev\)|Latency histogram|value  -+ distribution|SQL statistics:|queries performed:|` +
	`total:\s+\d+$|Forcing shutdown|WARNING: |ALERT: |FATAL: |cnsbench: |percentile stats: |Time limit exceeded)`)

// known says whether a line has a figure of the test, or none at all.
func (s *sysbench) known(row string) bool {
	if row == "" || sbLeftOut.MatchString(row) || sbPercentile.MatchString(row) {
		return true
	}
	return slices.ContainsFunc(s.test.figures, func(f sbFigure) bool { return f.line.MatchString(row) })
}

// sbReport is a report of the time since the one before.
type sbReport struct {
	figures     map[string]metric.Scalar
	length      float64 // seconds from the start of the run to its end
	events, sum float64 // sum of latencies in ms
}

// endReport ends the report that is read.
func (s *sysbench) endReport() {
	s.current.figures = s.block
	s.reports = append(s.reports, s.current)
	s.current, s.block = sbReport{}, nil
}

// whole puts the reports together: those of checkpoints (--report-checkpoints) and the last are each of the time since
// the one before. Rates are weighted by that time, the mean latency by the events; percentiles cannot be put together.
func (s *sysbench) whole() {
	s.report = len(s.reports) > s.checkpoints
	if len(s.reports) == 0 {
		for _, f := range s.test.figures { // of a report that is cut off
			s.addScalar(f.of, s.block)
		}
		s.events, s.length = s.current.events, s.current.length
		return
	}
	last, before := s.reports[len(s.reports)-1], 0.0
	for i, r := range s.reports {
		if r.length <= before {
			s.warn("figuresMissing", "report %d of %d has no total time, or not a later one: rates are wrong", i+1,
				len(s.reports))
		}
		before = r.length
	}
	s.length = last.length
	for _, r := range s.reports {
		s.events, s.sum = s.events+r.events, s.sum+r.sum
	}
	if len(s.reports) == 1 {
		for _, f := range s.test.figures {
			s.addScalar(f.of, last.figures)
		}
		return
	}
	s.warn("sysbenchCheckpoints", "%d reports (--report-checkpoints) are put together: percentiles of the whole are "+
		"unknown",
		len(s.reports))
	for _, f := range s.test.figures {
		if v, ok := s.combined(f.of); ok {
			s.addScalar(f.of, map[string]metric.Scalar{f.of.Name: f.of.Scalar(v)})
		}
	}
}

// expect checks that the report has the figures of its test. Of percentiles it has one at most.
func (s *sysbench) expect() {
	var want []metric.Declaration
	for _, f := range s.test.figures {
		if f.of.Kind != metric.Statistic {
			want = append(want, f.of)
		}
	}
	s.res.expect(want...)
	if len(s.reports) == 1 && s.percent == 0 && !s.noPercentile {
		s.res.expect(sbP95)
	}
}

func (s *sysbench) addScalar(of metric.Declaration, from map[string]metric.Scalar) {
	known := slices.ContainsFunc(s.res.Scalars, func(x metric.Scalar) bool { return x.Metric == of.Name })
	if x, ok := from[of.Name]; ok && !known {
		s.res.Scalars = append(s.res.Scalars, x)
	}
}

// combined returns a figure over all reports, as its kind says.
func (s *sysbench) combined(of metric.Declaration) (v float64, ok bool) {
	var weights, before float64
	for i, r := range s.reports {
		x, has := r.figures[of.Name]
		if !has || of.Kind == metric.Statistic {
			return 0, false
		}
		long := r.length - before
		before = r.length
		switch of.Kind {
		case metric.Quantity:
			v, weights = v+x.Value, 1
		case metric.Rate:
			v, weights = v+x.Value*long, weights+long
		case metric.Level:
			v, weights = v+x.Value*r.events, weights+r.events
		case metric.Least:
			if v, weights = min(v, x.Value), 1; i == 0 {
				v = x.Value
			}
		case metric.Greatest:
			v, weights = max(v, x.Value), 1
		}
	}
	return v / weights, weights > 0
}

// sbValue is a value of an intermediate report.
type sbValue struct {
	of    metric.Declaration
	value float64
}

// points adds the values of an intermediate report, which covers the time since the one before. Its percentile is a
// metric if it is the 95th or the 99th, in ms.
func (s *sysbench) points(end float64, percent string, latency float64, values ...sbValue) {
	if end <= s.last || end > maxDBSeconds {
		return
	}
	if s.step == 0 {
		s.step = end
	}
	switch latency = math.Round(latency * ms); percent {
	case "95":
		values = append(values, sbValue{sbP95, latency})
	case "99":
		values = append(values, sbValue{sbP99, latency})
	}
	for _, v := range values {
		s.point(v.of, s.last, end-s.last, v.value)
	}
	s.last = end
}

// point adds the value of an interval that begins at a number of seconds since the start, and has a length in seconds.
func (s *sysbench) point(of metric.Declaration, at, long, value float64) {
	if at > maxDBSeconds {
		return
	}
	x := s.series[of.Name]
	if x == nil {
		x = &intervals{Series: of.Series(int64(s.step * float64(time.Second)))}
		s.series[of.Name] = x
	}
	x.add(s.began()+op.Time(at*float64(time.Second)), op.Time(long*float64(time.Second)), value)
}

// began is when sysbench started.
func (s *sysbench) began() op.Time {
	if s.start <= 0 || s.start > 2*maxDBSeconds {
		return s.in.Started
	}
	return s.in.clock(int64(s.start * 1e9))
}

func (s *sysbench) judge() {
	because := ""
	if s.fatal != "" {
		because = ": " + s.fatal[:min(len(s.fatal), 200)]
	}
	switch {
	case !s.report:
		s.warn("sysbenchTruncated", "sysbench ended before its report%s", because)
	case because != "":
		s.warn("sysbenchError", "sysbench reported an error%s", because)
	}
	if s.queue > s.events/100 && s.report {
		s.warn("sysbenchQueued", "%.0f events still waited for a thread at the last intermediate report: they have no "+
			"latency, and more were due than were done", s.queue)
	}
}

// scalar returns a figure of the report, or 0.
func (s *sysbench) scalar(of metric.Declaration) float64 {
	for _, x := range s.res.Scalars {
		if x.Metric == of.Name {
			return x.Value
		}
	}
	return 0
}

// latency makes the histogram, with the sum, least and greatest latency of the report.
func (s *sysbench) latency() {
	if len(s.counts) == 0 || !s.report {
		return
	}
	h := hist.New()
	least, most := s.scalar(sbMin), s.scalar(sbMax)
	var n int64
	for i, middle := range s.middles {
		n += s.counts[i]
		if err := h.RecordN(int64(min(max(middle*ms, least), max(least, most))), s.counts[i]); err != nil {
			s.warn("latencyDoubtful", "%v", err)
			return
		}
	}
	switch events := s.events; {
	case float64(n) != events && len(s.reports) > 1:
		s.warn("sysbenchCheckpoints", "the histogram has %d of %.0f events, those since the last checkpoint: it is left out",
			n,
			events)
		return
	case float64(n) != events:
		s.warn("latencyDoubtful", "the histogram has %d events, the report %.0f", n, events)
	case s.sum*ms >= math.MaxInt64:
		s.warn("latencyDoubtful", "the sum of all latencies overflows")
	default:
		// The printed least and greatest have two decimals of a ms, and may round beyond the mean.
		mean := s.sum * ms / float64(max(1, n))
		if err := h.SetExact(int64(math.Round(s.sum*ms)), int64(min(least, math.Floor(mean))),
			int64(max(most, math.Ceil(mean)))); err != nil {
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
	length := min(max(s.length, 1e-3), maxDBSeconds)
	s.res.Totals = append(s.res.Totals, metric.Histogram{Metric: s.test.event.Name, Unit: s.test.event.Unit, Basis: basis,
		From: s.began(), To: s.began() + op.Time(length*float64(time.Second)), Hist: h})
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
