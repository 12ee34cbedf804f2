package parser

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
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
	etcdPuts   = declare("puts", metric.Count, metric.Quantity, metric.Higher, "puts that succeeded")
	etcdFailed = declare("failed", metric.Count, metric.Quantity, metric.Lower, "puts that failed")
	etcdRPS    = declare("rps", metric.PerSecond, metric.Rate, metric.Higher,
		"puts per second while rounds ran, and by second").Principal(1)
	etcdAverage = declare("latency.average", metric.Nanoseconds, metric.Level, metric.Lower,
		"mean latency of a put (service), and by second")
	etcdMin = declare("latency.min", metric.Nanoseconds, metric.Least, metric.Lower, "the least latency of a put")
	etcdMax = declare("latency.max", metric.Nanoseconds, metric.Greatest, metric.Lower,
		"the greatest latency of a put")
	etcdStddev = declare("latency.stddev", metric.Nanoseconds, metric.Statistic, metric.Lower,
		"standard deviation of the latency")

	// etcdQuantiles are those of the report by percent.
	etcdQuantiles = map[string]metric.Declaration{
		"50":   etcdQuantile("p50", "50 %"),
		"90":   etcdQuantile("p90", "90 %"),
		"95":   etcdQuantile("p95", "95 %"),
		"99":   etcdQuantile("p99", "99 %"),
		"99.9": etcdQuantile("p999", "99.9 %"),
	}

	etcdMetrics = []metric.Declaration{etcdFsync, etcdCommit, etcdPuts, etcdFailed, etcdRPS, etcdAverage, etcdMin, etcdMax,
		etcdStddev, etcdQuantiles["50"], etcdQuantiles["90"], etcdQuantiles["95"], etcdQuantiles["99"],
		etcdQuantiles["99.9"]}
)

func etcdQuantile(name, share string) metric.Declaration {
	return declare("latency."+name, metric.Nanoseconds, metric.Level, metric.Lower,
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
	if err := e.texts(maxEtcd, e.read, ".txt", ".prom"); err != nil {
		return e.res, fmt.Errorf("etcd: %w", err)
	}
	switch {
	case len(e.rounds) > 0 || e.failed > 0:
		e.results()
	case e.before != "":
		e.warn("etcdTruncated", "the benchmark of etcd ended before its first report")
	case len(e.res.Warnings) == 0:
		return e.res, errors.New("etcd: there is no report: name the file of the benchmark's stdout (*.txt) among the " +
			"outputs")
	}
	return e.res, nil
}

// etcd is the work on one container's files.
type etcd struct {
	work
	rounds        []*etcdRound
	seconds       map[int64]*etcdSecond // by Unix time
	failed        float64
	reason        string // of the first failure
	before, after string // the server's metrics
}

// maxEtcd is the limit of one file.
const maxEtcd = 16 << 20

func (e *etcd) read(name, text string) {
	switch {
	case path.Ext(name) == ".txt":
		e.readText(name, text)
	case path.Base(name) == "before.prom":
		e.before = text
	case path.Base(name) == "after.prom":
		e.after = text
	}
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

// etcdLines are the lines of a report, with what they say of its round.
var etcdLines = []struct {
	of   *regexp.Regexp
	read func(r *etcdRound, m []string)
}{
	{regexp.MustCompile(`^  (Total|Slowest|Fastest|Average|Stddev|Requests/sec):\t([\d.]+)(?: secs\.)?$`),
		(*etcdRound).figure},
	{regexp.MustCompile(`^  ([\d.]+)% in ([\d.]+) secs\.$`), (*etcdRound).figure},
	{regexp.MustCompile(`^  [\d.]+ \[(\d{1,12})\]\t\|∎*$`),
		func(r *etcdRound, m []string) { r.puts += etcdNumber(m[1]) }},
	{regexp.MustCompile(`^(\d{9,10}),[^,]+,([^,]+),[^,]+,(\d{1,12})$`), (*etcdRound).sample},
	{regexp.MustCompile(`^Latency distribution:$`), func(r *etcdRound, _ []string) { r.histogram = true }},
	{regexp.MustCompile(`^$|^Response time histogram:$|^Sample in one second |^UNIX-SECOND,`),
		func(*etcdRound, []string) {}},
}

// Lines after a report.
var (
	etcdError = regexp.MustCompile(`^  \[(\d{1,12})\]\t(.*)$`)
	etcdEnd   = regexp.MustCompile(`^cnsbench: put ended at (\d{9,10}\.\d{1,9})$`)
)

// readText reads the reports of one file; a half-written one is left out.
func (e *etcd) readText(name, text string) {
	var r *etcdRound
	var unread unreadLines
	errorsFollow := false
	for row := range strings.Lines(text) {
		row, whole := strings.CutSuffix(row, "\n")
		ended, failed := etcdEnd.FindStringSubmatch(row), etcdError.FindStringSubmatch(row)
		switch {
		case !whole:
			e.warn("etcdTruncated", "%s ends within a line: %s", name, bounded.Text(row, 100))
		case row == "Summary:":
			e.endRound(name, r)
			r = &etcdRound{figures: map[string]float64{}}
		case row == "Error distribution:":
			errorsFollow = true
		case failed != nil:
			errorsFollow = false
			e.failed += etcdNumber(failed[1])
			e.reason = cmp.Or(e.reason, failed[2][:min(len(failed[2]), 200)])
		case ended != nil && r != nil:
			r.ended = etcdNumber(ended[1])
			e.endRound(name, r)
			r = nil
		case ended == nil && row != "" && (r == nil || !r.read(row)):
			unread.add(name, row)
		}
	}
	e.endRound(name, r)
	unread.warn(&e.res)
	if errorsFollow {
		e.warn("figuresMissing", "%s has a distribution of errors without a number", name)
	}
}

// endRound takes a report whose lines are read.
func (e *etcd) endRound(name string, r *etcdRound) {
	switch {
	case r == nil:
	case r.valid():
		e.rounds = append(e.rounds, r)
		if missing := r.missing(); missing != "" {
			e.warn("figuresMissing", "%s: %s", name, missing)
		}
	default:
		e.warn("outputUnread", "%s has an incomplete report", name)
	}
}

// read takes one line of the report; false: it is none.
func (r *etcdRound) read(row string) bool {
	for _, l := range etcdLines {
		if m := l.of.FindStringSubmatch(row); m != nil {
			l.read(r, m)
			return true
		}
	}
	return false
}

func (r *etcdRound) figure(m []string) { r.figures[m[1]] = etcdNumber(m[2]) }

func (r *etcdRound) sample(m []string) {
	unix, _ := strconv.ParseInt(m[1], 10, 64) // digits all
	if average, err := time.ParseDuration(m[2]); err == nil && average >= 0 {
		r.samples = append(r.samples, etcdSample{unix: unix, average: average, puts: etcdNumber(m[3])})
	}
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
	if len(e.rounds) > 0 {
		e.summary()
		e.series()
	}
	if e.failed > 0 {
		e.scalar(etcdFailed, e.failed)
		e.warn("etcdFailed", "%.0f puts failed, the first error: %s", e.failed, e.reason)
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
			e.res.Totals = append(e.res.Totals, metric.Histogram{Metric: m.Name, Unit: m.Unit, Basis: "service", From: from,
				To: to, Hist: h})
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
	for _, share := range slices.Sorted(maps.Keys(etcdQuantiles)) {
		greatest, all := 0.0, true
		for _, r := range e.rounds {
			v, ok := r.figures[share]
			greatest, all = max(greatest, v), all && ok
		}
		if all {
			e.time(etcdQuantiles[share], greatest)
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
	rate, average := etcdRPS.Series(int64(time.Second)), etcdAverage.Series(int64(time.Second))
	for _, unix := range slices.Sorted(maps.Keys(e.seconds)) {
		at, s := e.in.clock(unix*int64(time.Second)), e.seconds[unix]
		if s.covered < 0.1 || len(rate.Points) >= maxCells {
			continue
		}
		rate.Points = append(rate.Points, metric.Point{At: at, Value: s.puts / s.covered})
		if s.puts > 0 {
			average.Points = append(average.Points, metric.Point{At: at, Value: s.latency / s.puts})
		}
	}
	for _, s := range []metric.Series{rate, average} {
		if len(s.Points) > 0 {
			e.res.Series = append(e.res.Series, s)
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
