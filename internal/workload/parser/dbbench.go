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

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The metrics of db_bench. They have the values that it prints.
var (
	rocksOps = declare("ops", metric.PerSecond, metric.Rate, metric.Higher,
		"operations per second; whole ones, as printed").Principal(1)
	rocksAll = declare("allOps", metric.PerSecond, metric.Rate, metric.Higher,
		"operations per second by interval, also of threads that the result leaves out, such as the writer of "+
			"readwhilewriting")
	rocksData = declare("dataRate", metric.BytesPerSecond, metric.Rate, metric.Higher,
		"keys and values read or written per second (MB/s as printed, which are MiB)").Principal(2)
	rocksCount   = declare("operations", metric.Count, metric.Quantity, "", "operations of all threads")
	rocksAverage = declare("latency.average", metric.Nanoseconds, metric.Level, metric.Lower,
		"micros/op: time of a thread for each operation")
	rocksStall = declare("stall", metric.Nanoseconds, metric.Quantity, metric.Lower,
		"time in which RocksDB held writers back, the sum over threads, with --statistics")

	// rocksLatencies are the latencies by the name that db_bench gives the kind of operation.
	rocksLatencies = map[string]metric.Declaration{
		"read":   latencyOf("get", "reads of a key (service)"),
		"write":  latencyOf("put", "writes of a key or of a batch (service)"),
		"delete": latencyOf("delete", "deletions of a key (service)"),
		"seek":   latencyOf("seek", "seeks of an iterator, with the steps after each (service)"),
		"merge":  latencyOf("merge", "merges into a key (service)"),
		"update": latencyOf("update", "reads and writes of a key (service)"),
		"op":     latencyOf("operation", "other operations (service)"),
	}

	rocksMetrics = append([]metric.Declaration{rocksLatencies["read"], rocksLatencies["write"], rocksLatencies["delete"],
		rocksLatencies["seek"], rocksLatencies["merge"], rocksLatencies["update"], rocksLatencies["op"]},
		rocksOps, rocksAll, rocksData, rocksCount, rocksAverage, rocksStall)
)

// DBBench reads the output of db_bench 7.8, the benchmark of RocksDB: its stdout (*.txt) with the result, histograms
// (--histogram) and statistics (--statistics); the report by interval (--report_file, of the same name with .csv), and
// the wall clock of that file's creation in Unix seconds (.start). If the container ran several benchmarks, the names
// of all metrics end in "/BENCHMARK".
//
// A latency is the time from the end of an operation of a thread to the end of the next; the wait for a limit of the
// rate is not part of it. So it is a service time. Its values are spread evenly over each bucket, as db_bench does for
// the percentiles that it prints; the widest buckets end at one and a half times their start.
func DBBench(in Input) (Result, error) {
	d := &dbBench{work: work{in: in}}
	if err := d.read(); err != nil {
		return d.res, fmt.Errorf("db_bench: %w", err)
	}
	if len(d.runs) == 0 {
		return d.res, errors.New("db_bench: there is no stdout and no report: name the file of its stdout (NAME.txt) and " +
			"its report (--report_file=NAME.csv) among the outputs")
	}
	d.results()
	return d.res, nil
}

// dbBench is the work on one container's files.
type dbBench struct {
	work
	runs   []*dbRun
	failed string // the first error on stderr
}

// dbRun is one process.
type dbRun struct {
	name       string // of its files
	benchmarks []*dbResult
	cut        bool      // what follows the result is not whole
	stall      string    // µs
	start      float64   // Unix seconds; 0: unknown
	intervals  [][]int64 // seconds since the start, operations
	unread     unreadLines
}

// dbResult is the result of one benchmark.
type dbResult struct {
	name       string
	figures    []metric.Scalar
	seconds    float64
	operations float64
	latencies  []*dbLatency
	found, all string // keys of a benchmark that reads
	unread     string // the line, if a part of it is not understood
}

// maxDBBench is the limit of one output of db_bench.
const maxDBBench = 16 << 20

func (d *dbBench) read() error {
	return d.texts(maxDBBench, func(name, text string) {
		if name == "stderr" {
			d.readErrors(text)
			return
		}
		ext := path.Ext(name)
		r := d.run(strings.TrimSuffix(name, ext))
		switch ext {
		case ".txt":
			d.readText(r, text)
			r.unread.warn(&d.res)
		case ".csv":
			d.readIntervals(r, name, text)
		case ".start":
			r.start, _ = strconv.ParseFloat(strings.TrimSpace(text), 64)
		}
	}, ".txt", ".csv", ".start", "stderr")
}

// run returns the process of an output.
func (d *dbBench) run(name string) *dbRun {
	for _, r := range d.runs {
		if r.name == name {
			return r
		}
	}
	d.runs = append(d.runs, &dbRun{name: name})
	return d.runs[len(d.runs)-1]
}

// dbError is a message of an operation that failed.
var dbError = regexp.MustCompile(`(?m)^.*\b(?:error|Error|failed|unknown benchmark)\b.*$`)

func (d *dbBench) readErrors(text string) {
	d.failed = strings.TrimSpace(dbError.FindString(text))
	d.failed = d.failed[:min(len(d.failed), 200)]
}

// Lines of db_bench's stdout.
var (
	dbLine = regexp.MustCompile(`^(\S+)\s+:\s+([\d.]+) micros/op (\d+) ops/sec ([\d.]+) seconds ` +
		`(\d+) operations;(.*)$`)
	dbData  = regexp.MustCompile(`([\d.]+) MB/s`)
	dbSeen  = regexp.MustCompile(`\((\d+) of (\d+) found\)`)
	dbKind  = regexp.MustCompile(`^Microseconds per (\w+):$`)
	dbWait  = regexp.MustCompile(`^rocksdb\.stall\.micros COUNT : (\d+)$`)
	dbAfter = regexp.MustCompile(`(?m)^(?:Microseconds per \w+|STATISTICS):$`)
	// dbUnread is a part of a result or of a histogram that no other pattern matches.
	dbUnread   = regexp.MustCompile(`micros/op | ops/sec |^Microseconds per |^[(\[].* \] |^rocksdb\.stall\.micros `)
	dbRepeated = regexp.MustCompile(`(?m)^\S+ \[(?:AVG|MEDIAN) +\d+ runs\] : .*\n`)
	dbSlow     = regexp.MustCompile(`^WARNING: (.*(?:slow|Optimization).*)$`)
)

func (d *dbBench) readText(r *dbRun, text string) {
	// Histograms and statistics end in an empty line each. After them there are only the means of repeated benchmarks.
	r.cut = text != "" && !strings.HasSuffix(text, "\n") ||
		dbAfter.MatchString(text) && !strings.HasSuffix(dbRepeated.ReplaceAllString(text, ""), "\n\n")
	var now *dbResult
	var latency *dbLatency
	for row := range strings.Lines(text) {
		if !strings.HasSuffix(row, "\n") { // half written
			break
		}
		row = strings.TrimSpace(row)
		if m := dbLine.FindStringSubmatch(row); m != nil {
			now, latency = newDBResult(m), nil
			if now.unread != "" {
				r.unread.add(r.name, now.unread)
			}
			r.benchmarks = append(r.benchmarks, now)
		} else if m := dbKind.FindStringSubmatch(row); m != nil && now != nil {
			latency = &dbLatency{kind: m[1]}
			now.latencies = append(now.latencies, latency)
		} else if m := dbWait.FindStringSubmatch(row); m != nil {
			r.stall = m[1]
		} else if m := dbSlow.FindStringSubmatch(row); m != nil {
			if !slices.ContainsFunc(d.res.Warnings, func(w Warning) bool { return w.Code == "dbBenchSlow" }) {
				d.warn("dbBenchSlow", "db_bench says: %s", m[1])
			}
		} else if latency != nil && latency.read(row) {
			continue
		} else if dbUnread.MatchString(row) {
			r.unread.add(r.name, row)
		}
	}
}

func newDBResult(m []string) *dbResult {
	b := &dbResult{name: m[1]}
	b.add(rocksAverage, m[2], 1000)
	b.add(rocksOps, m[3], 1)
	b.seconds, _ = strconv.ParseFloat(m[4], 64)
	b.operations, _ = strconv.ParseFloat(m[5], 64)
	b.add(rocksCount, m[5], 1)
	if rate := dbData.FindStringSubmatch(m[6]); rate == nil && strings.Contains(m[6], "MB/s") {
		b.unread = m[0]
	} else if rate != nil {
		b.add(rocksData, rate[1], 1<<20)
	}
	if seen := dbSeen.FindStringSubmatch(m[6]); seen != nil {
		b.found, b.all = seen[1], seen[2]
	}
	return b
}

// add adds a figure of the report, of which one is unit.
func (b *dbResult) add(of metric.Declaration, text string, unit float64) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return
	}
	if unit == 1000 { // three decimals of a µs
		v = math.Round(v * unit)
	} else {
		v *= unit
	}
	b.figures = append(b.figures, of.Scalar(v))
}

// maxDBSeconds and maxDBOps are the greatest accepted numbers of a report by interval.
const (
	maxDBSeconds = 1 << 31
	maxDBOps     = 1 << 53
)

// results adds the figures of all benchmarks.
func (d *dbBench) results() {
	several := len(d.runs) > 1 || len(d.runs[0].benchmarks) > 1
	for _, r := range d.runs {
		suffix := func(name string) string {
			if several {
				return "/" + path.Base(name)
			}
			return ""
		}
		if len(r.benchmarks) == 0 {
			reason := ""
			if d.failed != "" {
				reason = ": " + d.failed
			}
			d.warn("dbBenchTruncated", "%s: db_bench ended before its result%s", r.name, reason)
		}
		if len(r.benchmarks) > 0 && r.cut {
			d.warn("dbBenchTruncated", "%s: the output ends within a histogram or the statistics: those that are whole are used",
				r.name)
		}
		for i, b := range r.benchmarks {
			if slices.ContainsFunc(r.benchmarks[:i], func(o *dbResult) bool { return o.name == b.name }) {
				d.warn("outputUnread", "%s: the benchmark %s has several results: the first is used", r.name, b.name)
				continue
			}
			d.result(r, b, suffix(b.name))
		}
		if us, err := strconv.ParseFloat(r.stall, 64); err == nil {
			d.scalar(rocksStall.Scalar(us*1000), suffix(r.name))
		}
		if last := len(r.benchmarks) - 1; last >= 0 { // the report is that of the last
			d.series(r, suffix(r.benchmarks[last].name))
		} else {
			d.series(r, suffix(r.name))
		}
	}
}

func (d *dbBench) scalar(s metric.Scalar, suffix string) {
	s.Metric += suffix
	d.res.Scalars = append(d.res.Scalars, s)
}

// result adds the figures of one benchmark.
func (d *dbBench) result(r *dbRun, b *dbResult, suffix string) {
	for _, s := range b.figures {
		d.scalar(s, suffix)
	}
	if b.found == "0" && b.all != "0" && b.name != "readmissing" {
		d.warn("dbBenchNotFound", "%s: none of %s keys was found: the database has other keys, or none", b.name, b.all)
	}
	d.agree(r, b)
	from := d.start(r)
	length := min(max(b.seconds, 1e-3), maxDBSeconds)
	for _, l := range b.latencies {
		h, err := l.histogram()
		if err != nil && r.cut {
			continue // of its fast operations only
		}
		if err != nil {
			d.warn("latencyDoubtful", "%s, %s: %v", b.name, l.kind, err)
		}
		if h.N() == 0 {
			continue
		}
		of, ok := rocksLatencies[l.kind]
		if !ok {
			of = rocksLatencies["op"]
		}
		d.res.Totals = append(d.res.Totals, metric.Histogram{Metric: of.Name + suffix, Unit: of.Unit, Basis: "service",
			From: from, To: from + op.Time(length*float64(time.Second)), Hist: h})
	}
}

// agree warns of histograms of more operations than the benchmark had: the result of the one that follows is missing.
func (d *dbBench) agree(r *dbRun, b *dbResult) {
	n := int64(0)
	for _, l := range b.latencies {
		n += l.n
	}
	if float64(n) > b.operations {
		d.warn("figuresMissing", "%s: %s has %.0f operations, its histograms %d: a line is missing", r.name, b.name,
			b.operations, n)
	}
}

// start is when the benchmark began.
func (d *dbBench) start(r *dbRun) op.Time {
	if r.start <= 0 || r.start > maxDBSeconds*2 {
		return d.in.Started
	}
	return d.in.clock(int64(r.start * 1e9))
}
