package parser

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// redisCommand is the operation of a test that is none of redis-benchmark's own.
const redisCommand = "command"

// redisTests are the operations of redis-benchmark 7.0.
var redisTests = []string{"ping_inline", "ping_mbulk", "set", "get", "incr", "lpush", "rpush", "lpop", "rpop", "sadd",
	"hset", "spop", "zadd", "zpopmin", "lrange_100", "lrange_300", "lrange_500", "lrange_600", "mset", redisCommand}

// redisMetrics are a histogram and a rate of each operation.
var redisMetrics = func() (list []metric.Declaration) {
	for _, name := range redisTests {
		list = append(list, redisLatency(name), redisRate(name))
		for _, f := range redisSummaries {
			list = append(list, redisSummaryOf(name, f))
		}
	}
	return list
}()

func redisLatency(operation string) metric.Declaration {
	return latencyOf(operation, redisMeaning(operation)+"; with a pipeline that of its batch")
}

// redisFigure is a figure that redis-benchmark prints of a test without its distribution (--csv, -q).
type redisFigure struct {
	column, name string
	kind         metric.Kind
}

var redisSummaries = []redisFigure{{"p50_latency_ms", "p50", metric.Statistic},
	{"p99_latency_ms", "p99", metric.Statistic}, {"max_latency_ms", "max", metric.Greatest}}

func redisSummaryOf(operation string, f redisFigure) metric.Declaration {
	return timeOf(operation+".latency."+f.name, f.kind,
		f.name+" of "+redisMeaning(operation)+", where only a summary is printed (--csv, -q)")
}

func redisRate(operation string) metric.Declaration {
	return rateOf(operation+".rps", redisMeaning(operation)+" per second while the test ran").
		Principal(slices.Index(redisTests, operation) + 1)
}

func redisMeaning(operation string) string {
	if operation == redisCommand {
		return "requests of the variable command"
	}
	return "requests of the test " + operation
}

// Redis reads the output of redis-benchmark 7.0 (*.txt): the reports of its tests, and before each the rates of every
// 250 ms. A line of the library's entry before a test says when it began; without it tests follow each other from the
// start of the container.
//
// A report has the number of requests up to certain latencies, and exact quantiles (50, 95, 99 %), of which a histogram
// is made. Where a latency is not known it is rounded up: to the next 0.1 ms, from 2 ms on to the next ms. Several
// reports of a test are merged. It is a closed loop: there is the service view alone.
func Redis(in Input) (Result, error) {
	r := &redis{work: work{in: in}, ended: in.Started, tests: map[string]*redisTest{}}
	return r.work.run("redis-benchmark", "there is no report: name the file of its stdout (*.txt) among the outputs",
		r.read, r.results)
}

func (r *redis) read() (bool, error) {
	err := r.walk(func(name string) error {
		err := r.lines(name, func(row string) { matched(r, redisLines, row) })
		r.endRun()
		return err
	}, ".txt")
	return len(r.tests) > 0 || len(r.res.Warnings) > 0, err
}

func (r *redis) results() {
	for _, name := range redisTests {
		if t := r.tests[name]; t != nil {
			t.results(r)
		}
	}
}

// redis is the work on one container's files.
type redis struct {
	work
	run   *redisRun // whose lines are read
	ended op.Time   // of the run before
	tests map[string]*redisTest

	columns []string // of the CSV that is printed
}

// redisTick is the time between two lines of progress, which redis-benchmark never undercuts.
const redisTick = 250 * op.Time(time.Millisecond)

// redisLines are the lines that are read, of several tests one after another. Others have no figures.
var redisLines = []linePattern[*redis]{
	{re(`^cnsbench: (\S+), (\d{1,3}) threads, at (\d{9,10})\.(\d{9})$`), func(r *redis, m []string) {
		r.endRun()
		r.run = &redisRun{test: m[1], threads: m[2] != "0", start: r.in.clock(unixNano(m[3], m[4]))}
	}},
	{re(`^(.+): rps=([\d.]+) \(overall: (-?nan|[\d.]+)\) avg_msec=`), (*redis).progress},
	redisReported(`^  throughput summary: (\S+) requests per second$`, func(u *redisRun, m []string) {
		u.report.rps, _ = strconv.ParseFloat(m[1], 64)
	}),
	{re(`^ *(.+): ([\d.]+) requests per second(?:, p50=([\d.]+) msec)? *$`), func(r *redis, m []string) {
		cells := map[string]string{}
		if m[3] != "" {
			cells["p50_latency_ms"] = m[3]
		}
		r.summary(m[1], m[2], cells)
	}},
	{re(`^"test","rps"(?:,"(?:avg|min|p50|p95|p99|max)_latency_ms")*$`), func(r *redis, m []string) {
		r.columns = redisCells(m[0])
	}},
	{re(`^".*$`), (*redis).csv},
	{re(`^.*requests per second.*$`), func(r *redis, m []string) {
		r.warn("outputUnread", "a line with a rate is not understood: %s", bounded.Text(m[0], 100))
	}},
	{re(`^====== (.+) ======$`), func(r *redis, m []string) { r.of(m[1]).report = &redisReport{} }},
	{re(`^  (\d+) requests completed in [\d.]+ seconds$`), func(r *redis, m []string) {
		if r.run == nil || r.run.report == nil {
			r.warn("outputUnread", "a report has no title: the test whose it is is unknown")
			return
		}
		r.run.report.requests, _ = strconv.ParseInt(m[1], 10, 64)
	}},
	redisReported(`^  multi-thread: yes$`, func(u *redisRun, _ []string) { u.threads = true }),
	redisReported(`^[\d.]+% <= (\d+)\.(\d{3}) milliseconds \(cumulative count (\d+)\)$`, func(u *redisRun, m []string) {
		u.report.addEdge(m[1]+m[2], m[3])
	}),
	{re(`^ +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$`), func(r *redis, m []string) {
		if r.run != nil && r.run.report != nil {
			r.run.report.setSummary(m[1:])
			r.endRun()
		}
	}},
}

// redisReported is a line of the report of the test that runs.
func redisReported(pattern string, read func(u *redisRun, m []string)) linePattern[*redis] {
	return linePattern[*redis]{re(pattern), func(r *redis, m []string) {
		if r.run != nil && r.run.report != nil {
			read(r.run, m)
		}
	}}
}

// redisCells are the cells of a row of --csv.
func redisCells(row string) []string { return strings.Split(strings.Trim(row, `"`), `","`) }

// progress takes the rate of 250 ms.
func (r *redis) progress(m []string) {
	rate, err := strconv.ParseFloat(m[2], 64)
	if err != nil {
		return
	}
	run := r.of(m[1])
	if run.rates = append(run.rates, rate); len(run.rates) > 1 { // the first is printed at once
		run.overall, _ = strconv.ParseFloat(m[3], 64) // or NaN, at first
	}
}

// csv takes a row of --csv, whose header was read.
func (r *redis) csv(m []string) {
	fields := redisCells(m[0])
	if len(fields) != len(r.columns) {
		r.warn("outputUnread", "a line has %d cells, the header %d: %s", len(fields), len(r.columns), bounded.Text(m[0], 100))
		return
	}
	cells := map[string]string{}
	for i, c := range r.columns {
		cells[c] = fields[i]
	}
	r.summary(cells["test"], cells["rps"], cells)
}

// summary ends a test whose report is one line: a rate, and perhaps some latencies in ms by the name of their column.
func (r *redis) summary(title, rate string, cells map[string]string) {
	u := r.of(title)
	v, err := strconv.ParseFloat(rate, 64)
	if err != nil || !finite(v) {
		r.warn("outputUnread", "the rate %q of the test %s is not a number", rate, title)
		return
	}
	u.summary, u.overall = map[string]float64{}, v
	for _, f := range redisSummaries {
		text, ok := cells[f.column]
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !finite(x) {
			r.warn("outputUnread", "%s %q of the test %s is not a number", f.column, text, title)
			continue
		}
		u.summary[f.name] = x
	}
	r.warn("redisSummary", "redis-benchmark printed summaries only (--csv, -q): there is no distribution of latencies")
	r.endRun()
}

// of returns the run of a test by its title: that of the line before, or one that follows the last.
func (r *redis) of(title string) *redisRun {
	if r.run != nil && r.run.title != "" && r.run.title != title {
		r.endRun()
	}
	if r.run == nil {
		r.run = &redisRun{start: r.ended}
	}
	r.run.title = title
	return r.run
}

// redisRun is one run of one test.
type redisRun struct {
	test    string // what the entry calls it
	title   string // what redis-benchmark calls it
	threads bool   // each of several threads prints progress
	start   op.Time
	rates   []float64 // of every 250 ms; the first is none
	overall float64
	report  *redisReport
	summary map[string]float64 // in ms, by the name of the figure; nil: there is none
}

// operation is the name of the test's metrics; empty for what only prepares another.
func (u *redisRun) operation() string {
	name, note, _ := strings.Cut(u.title, " (")
	if strings.HasPrefix(note, "needed ") {
		return ""
	}
	if u.title == "" {
		name = u.test
	}
	if name == strings.ToLower(name) && u.title != "" || !slices.Contains(redisTests, strings.ToLower(name)) {
		return redisCommand
	}
	return strings.ToLower(name)
}

// endRun adds a run to its test.
func (r *redis) endRun() {
	u := r.run
	r.run = nil
	if u == nil {
		return
	}
	name := u.operation()
	complete := u.report != nil && u.report.complete
	switch {
	case complete:
		r.ended = u.start + u.report.took()
	case u.summary != nil:
	case name != "":
		r.warn("redisTruncated", "redis-benchmark ended in the test %s, before its report", name)
	}
	if name == "" {
		if u.test != "" { // the same call measures the next test
			r.run = &redisRun{test: u.test, threads: u.threads, start: r.ended}
		}
		return
	}
	t := r.tests[name]
	if t == nil {
		t = &redisTest{name: name}
		r.tests[name] = t
	}
	t.add(r, u, complete)
}
