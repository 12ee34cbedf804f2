package parser

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The metrics of etcd's benchmark and of its server.
var (
	etcdPuts    = declare("puts", metric.Count, metric.Quantity, metric.Higher, "puts that succeeded")
	etcdFailed  = faultsOf("failed", "puts that failed")
	etcdRPS     = rateOf("rps", "puts per second while rounds ran, and by second").Principal(1)
	etcdAverage = timeOf("latency.average", metric.Level, "mean latency of a put (service), and by second")
	etcdMin     = timeOf("latency.min", metric.Least, "the least latency of a put")
	etcdMax     = timeOf("latency.max", metric.Greatest, "the greatest latency of a put")
	etcdStddev  = timeOf("latency.stddev", metric.Statistic, "standard deviation of the latency")

	// etcdQuantiles are those of the report.
	etcdQuantiles = []struct {
		percent string
		of      metric.Declaration
	}{
		{"50", etcdQuantile("p50", "50 %")}, {"90", etcdQuantile("p90", "90 %")}, {"95", etcdQuantile("p95", "95 %")},
		{"99", etcdQuantile("p99", "99 %")}, {"99.9", etcdQuantile("p999", "99.9 %")},
	}

	etcdMetrics = func() []metric.Declaration {
		list := []metric.Declaration{etcdFsync, etcdCommit, etcdPuts, etcdFailed, etcdRPS, etcdAverage, etcdMin, etcdMax,
			etcdStddev}
		for _, q := range etcdQuantiles {
			list = append(list, q.of)
		}
		return list
	}()
)

func etcdQuantile(name, share string) metric.Declaration {
	return timeOf("latency."+name, metric.Level,
		share+" of puts were as fast; of several rounds the greatest, which theirs together does not exceed")
}

// Etcd reads the reports of the puts of etcd's benchmark 3.6 (*.txt), with --sample and --precise or without; after
// each a line of the library's entry that says when it ended. Without that line a rate by second counts its whole
// second. Several reports are rounds of one measurement.
//
// The benchmark's own histogram has ten bins of equal width, too coarse for a distribution. Its latency begins after
// the wait for --rate: it is the service time. Distributions are those of the server, of the fsyncs of its log and of
// the commits of its database: the difference of its metrics before.prom and after.prom.
func Etcd(in Input) (Result, error) {
	e := &etcd{work: work{in: in}, seconds: map[int64]*etcdSecond{}}
	return e.run("etcd", "there is no report: name the file of the benchmark's stdout (*.txt) among the outputs", e.read,
		e.results)
}

// etcd is the work on one container's files.
type etcd struct {
	work
	now           *etcdRound // that is read
	rounds        []*etcdRound
	seconds       map[int64]*etcdSecond // by Unix time
	puts          float64               // that failed
	errorsFollow  bool
	before, after string // the server's metrics
}

// maxEtcd is the limit of one file.
const maxEtcd = 16 << 20

func (e *etcd) read() (bool, error) {
	err := e.texts(maxEtcd, func(name, text string) {
		switch {
		case path.Ext(name) == ".txt":
			e.readText(name, text)
		case path.Base(name) == "before.prom":
			e.before = text
		case path.Base(name) == "after.prom":
			e.after = text
		}
	}, ".txt", ".prom")
	return len(e.rounds) > 0 || e.puts > 0 || e.before != "" || len(e.res.Warnings) > 0, err
}

// etcdRound is one report.
type etcdRound struct {
	figures   map[string]float64 // of the summary by name, and of the percentiles by percent; in seconds or 1/s
	puts      float64
	samples   []etcdSample
	ended     float64 // Unix seconds; 0: unknown
	histogram bool    // the bins are over
}

// etcdSample is what a report says of one second.
type etcdSample struct {
	unix    int64
	average time.Duration
	puts    float64
}

// took is how long the round ran, in s.
func (r *etcdRound) took() float64 { return r.figures["Total"] }

// etcdSecond sums the samples of one second.
type etcdSecond struct{ puts, latency, covered float64 }

// etcdLines are the lines around reports, and etcdReport those of one.
var (
	etcdLines = []linePattern[*etcd]{
		{re(`^$`), nil},
		{re(`^Summary:$`), func(e *etcd, _ []string) {
			e.endRound()
			e.now = &etcdRound{figures: map[string]float64{}}
		}},
		{re(`^Error distribution:$`), func(e *etcd, _ []string) { e.errorsFollow = true }},
		{re(`^  \[(\d{1,12})\]\t(.*)$`), func(e *etcd, m []string) {
			e.errorsFollow = false
			e.puts += etcdNumber(m[1])
			e.fail(m[2])
		}},
		{re(`^cnsbench: put ended at (\d{9,10}\.\d{1,9})$`), func(e *etcd, m []string) {
			if e.now != nil {
				e.now.ended = etcdNumber(m[1])
			}
			e.endRound()
		}},
	}
	etcdReport = []linePattern[*etcdRound]{
		{re(`^  (?:(Total|Slowest|Fastest|Average|Stddev|Requests/sec):\t([\d.]+)(?: secs\.)?|` +
			`([\d.]+)% in ([\d.]+) secs\.)$`),
			func(r *etcdRound, m []string) { r.figures[m[1]+m[3]] = etcdNumber(m[2] + m[4]) }},
		{re(`^  [\d.]+ \[(\d{1,12})\]\t\|∎*$`), func(r *etcdRound, m []string) { r.puts += etcdNumber(m[1]) }},
		{re(`^(\d{9,10}),[^,]+,([^,]+),[^,]+,(\d{1,12})$`), func(r *etcdRound, m []string) {
			if average, err := time.ParseDuration(m[2]); err == nil && average >= 0 {
				r.samples = append(r.samples, etcdSample{int64(numberOf(m[1])), average, etcdNumber(m[3])})
			}
		}},
		{re(`^Latency distribution:$`), func(r *etcdRound, _ []string) { r.histogram = true }},
		{re(`^Response time histogram:$|^Sample in one second |^UNIX-SECOND,`), nil},
	}
)

// readText reads the reports of one file; a half-written one is left out.
func (e *etcd) readText(name, text string) {
	e.errorsFollow, e.unread = false, unreadLines{}
	for row := range strings.Lines(text) {
		row, whole := strings.CutSuffix(row, "\n")
		if !whole {
			e.warn("etcdTruncated", "%s ends within a line: %s", name, bounded.Text(row, 100))
		} else if !matched(e, etcdLines, row) && (e.now == nil || !matched(e.now, etcdReport, row)) {
			e.leave(row)
		}
	}
	e.endRound()
	e.unread.warn(&e.res)
	if e.errorsFollow {
		e.warn("figuresMissing", "%s has a distribution of errors without a number", name)
	}
}

// endRound takes the report whose lines are read.
func (e *etcd) endRound() {
	switch r := e.now; {
	case r == nil:
	case r.valid():
		e.rounds = append(e.rounds, r)
		if missing := r.missing(); missing != "" {
			e.warn("figuresMissing", "%s: %s", e.file, missing)
		}
	default:
		e.warn("outputUnread", "%s has an incomplete report", e.file)
	}
	e.now = nil
}

// maxEtcdNumber bounds figures, so that times in ns fit an int64.
const maxEtcdNumber = 9e9

// etcdNumber is NaN for what is none, or out of bounds.
func etcdNumber(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= maxEtcdNumber) {
		return math.NaN()
	}
	return v
}

// valid says whether the figures of the report are known.
func (r *etcdRound) valid() bool {
	for _, name := range []string{"Total", "Slowest", "Fastest", "Average", "Stddev", "Requests/sec"} {
		if _, ok := r.figures[name]; !ok {
			return false
		}
	}
	for _, v := range r.figures {
		if !finite(v) {
			return false
		}
	}
	return r.histogram && r.took() > 0 && r.puts > 0 && finite(r.puts)
}

// missing says what a valid report lacks: puts of its histogram, which are Total × Requests/sec (four decimals each,
// without --precise), and a percentile, of which each has at least one put beyond it.
func (r *etcdRound) missing() string {
	rate := r.figures["Requests/sec"]
	if puts := rate * r.took(); math.Abs(puts-r.puts) > 0.01+1e-4*(rate+r.took()) {
		return fmt.Sprintf("the histogram has %.0f puts, the rate and the time give %.1f: lines are missing", r.puts, puts)
	}
	for percent, least := range map[string]float64{"10": 2, "25": 2, "50": 2, "75": 4, "90": 10, "95": 20, "99": 100,
		"99.9": 1000} {
		if _, ok := r.figures[percent]; !ok && r.puts >= least {
			return "the report has no percentile " + percent
		}
	}
	return ""
}

// results adds the metrics.
func (e *etcd) results() {
	if len(e.rounds) == 0 && !(e.puts > 0) {
		if e.before != "" {
			e.warn("etcdTruncated", "the benchmark of etcd ended before its first report")
		}
		return
	}
	if len(e.rounds) > 0 {
		e.summary()
		e.series()
	}
	if e.puts > 0 {
		e.scalar(etcdFailed, e.puts)
		e.warn("etcdFailed", "%.0f puts failed, the first error: %s", e.puts, e.failed)
	}
	from, to := e.span()
	for _, m := range []struct {
		metric.Declaration
		family string
	}{{etcdFsync, etcdFsyncFamily}, {etcdCommit, etcdCommitFamily}} {
		h, capped, err := etcdDifference(e.before, e.after, m.family)
		switch {
		case errors.Is(err, errEtcdNoMetrics):
			continue
		case err != nil:
			e.warn("outputUnread", "%s: %v", m.family, err)
			continue
		case capped:
			e.warn("etcdLatencyCapped", "%s has latencies beyond the last bound of etcd's buckets, which count as that", m.Name)
		}
		if h.N() > 0 {
			e.total(m.Declaration, "service", from, to, h)
		}
	}
}

// summary adds the figures of all rounds together; those of one round as they are printed.
func (e *etcd) summary() {
	var puts, took, latency, squares float64
	first := e.rounds[0].figures
	least, most := first["Fastest"], first["Slowest"]
	for _, r := range e.rounds {
		puts, took, latency = puts+r.puts, took+r.took(), latency+r.puts*r.figures["Average"]
		least, most = min(least, r.figures["Fastest"]), max(most, r.figures["Slowest"])
	}
	rps, average := puts/took, latency/puts
	for _, r := range e.rounds {
		off := r.figures["Average"] - average
		squares += r.puts * (r.figures["Stddev"]*r.figures["Stddev"] + off*off)
	}
	stddev := math.Sqrt(squares / puts)
	if len(e.rounds) == 1 {
		rps, average, stddev = first["Requests/sec"], first["Average"], first["Stddev"]
	}
	e.scalar(etcdPuts, puts)
	e.scalar(etcdRPS, rps)
	e.time(etcdAverage, average)
	e.time(etcdMin, least)
	e.time(etcdMax, most)
	e.time(etcdStddev, stddev)
	for _, q := range etcdQuantiles {
		greatest, all := 0.0, true
		for _, r := range e.rounds {
			v, ok := r.figures[q.percent]
			greatest, all = max(greatest, v), all && ok
		}
		if all {
			e.time(q.of, greatest)
		}
	}
}

// time adds a time in s.
func (e *etcd) time(of metric.Declaration, v float64) { e.scalar(of, math.Round(v*1e9)) }

// series adds the rate and the mean latency of each second of which at least a tenth is known.
func (e *etcd) series() {
	for _, r := range e.rounds {
		for _, s := range r.samples {
			covered := 1.0
			if r.ended > 0 {
				covered = min(r.ended, float64(s.unix+1)) - max(r.ended-r.took(), float64(s.unix))
			}
			sum := e.seconds[s.unix]
			if sum == nil {
				sum = &etcdSecond{}
				e.seconds[s.unix] = sum
			}
			sum.puts += s.puts
			sum.latency += s.puts * float64(s.average)
			sum.covered = min(1, sum.covered+max(0, covered))
		}
	}
	n := 0
	for _, unix := range slices.Sorted(maps.Keys(e.seconds)) {
		at, s := e.in.clock(unix*int64(time.Second)), e.seconds[unix]
		if s.covered < 0.1 || n >= maxCells {
			continue
		}
		n++
		e.interval(etcdRPS, aSecond, at, aSecond, s.puts/s.covered)
		if s.puts > 0 {
			e.interval(etcdAverage, aSecond, at, aSecond, s.latency/s.puts)
		}
	}
}

// span is the time from the start of the first round to the end of the last.
func (e *etcd) span() (from, to op.Time) {
	ns := func(seconds float64) op.Time { return op.Time(seconds * 1e9) }
	if len(e.rounds) == 0 {
		return e.in.Started, e.in.Started + 1
	}
	first, last := e.rounds[0], e.rounds[len(e.rounds)-1]
	if first.ended > 0 && last.ended >= first.ended {
		from, to = e.in.clock(int64(first.ended*1e9))-ns(first.took()), e.in.clock(int64(last.ended*1e9))
	} else {
		from = e.in.Started
		for _, r := range e.rounds {
			to += ns(r.took())
		}
		to += from
	}
	return from, max(to, from+1)
}
