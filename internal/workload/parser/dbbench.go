package parser

import (
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/metric"
)

// The metrics of db_bench. They have the values that it prints.
var (
	rocksOps = rateOf("ops", "operations per second; whole ones, as printed").Principal(1)
	rocksAll = rateOf("allOps", "operations per second by interval, also of threads that the result leaves out, such as "+
		"the writer of readwhilewriting")
	rocksData = bandwidthOf("dataRate",
		"keys and values read or written per second (MB/s as printed, which are MiB)").Principal(2)
	rocksCount   = countOf("operations", "operations of all threads")
	rocksAverage = timeOf("latency.average", metric.Level, "micros/op: time of a thread for each operation")
	rocksStall   = timeOf("stall", metric.Quantity,
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

	rocksMetrics = []metric.Declaration{rocksLatencies["read"], rocksLatencies["write"], rocksLatencies["delete"],
		rocksLatencies["seek"], rocksLatencies["merge"], rocksLatencies["update"], rocksLatencies["op"],
		rocksOps, rocksAll, rocksData, rocksCount, rocksAverage, rocksStall}

	// rocksPrinted are the units of db_bench: µs, and MiB/s.
	rocksPrinted = printedIn{metric.Nanoseconds: 1000, metric.BytesPerSecond: 1 << 20}
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
	return d.run("db_bench", "there is no stdout and no report: name the file of its stdout (NAME.txt) and its report "+
		"(--report_file=NAME.csv) among the outputs", d.read, d.results)
}

// dbBench is the work on one container's files.
type dbBench struct {
	work
	runs    []*dbRun
	now     *dbRun     // whose stdout is read
	latency *dbLatency // that is read; nil: none
}

// dbRun is one process.
type dbRun struct {
	name       string // of its files
	benchmarks []*dbResult
	cut        bool      // what follows the result is not whole
	stall      float64   // ns; NaN: unknown
	start      string    // Unix seconds
	intervals  [][]int64 // seconds since the start, operations
}

// dbResult is the result of one benchmark.
type dbResult struct {
	name       string
	figures    []metric.Scalar
	seconds    float64
	operations float64
	latencies  []*dbLatency
	found, all string // keys of a benchmark that reads
}

// maxDBBench is the limit of one output of db_bench.
const maxDBBench = 16 << 20

func (d *dbBench) read() (bool, error) {
	err := d.texts(maxDBBench, func(name, text string) {
		if name == "stderr" {
			d.fail(strings.TrimSpace(dbError.FindString(text)))
			return
		}
		ext := path.Ext(name)
		r := d.process(strings.TrimSuffix(name, ext))
		switch ext {
		case ".txt":
			d.readText(r, text)
		case ".csv":
			d.readIntervals(r, name, text)
		case ".start":
			r.start = text
		}
	}, ".txt", ".csv", ".start", "stderr")
	return len(d.runs) > 0, err
}

// process returns the process of an output.
func (d *dbBench) process(name string) *dbRun {
	for _, r := range d.runs {
		if r.name == name {
			return r
		}
	}
	d.runs = append(d.runs, &dbRun{name: name, stall: math.NaN()})
	return d.runs[len(d.runs)-1]
}

// Parts of db_bench's output.
var (
	// dbError is a message of an operation that failed.
	dbError    = re(`(?m)^.*\b(?:error|Error|failed|unknown benchmark)\b.*$`)
	dbData     = re(`([\d.]+) MB/s`)
	dbSeen     = re(`\((\d+) of (\d+) found\)`)
	dbAfter    = re(`(?m)^(?:Microseconds per \w+|STATISTICS):$`)
	dbRepeated = re(`(?m)^\S+ \[(?:AVG|MEDIAN) +\d+ runs\] : .*\n`)
	// dbUnread is a part of a result or of a histogram that no other pattern matches.
	dbUnread = re(`micros/op | ops/sec |^Microseconds per |^[(\[].* \] |^rocksdb\.stall\.micros `)

	// dbLines are the lines of the stdout, beside those of histograms.
	dbLines = []linePattern[*dbBench]{
		{re(`^(\S+)\s+:\s+([\d.]+) micros/op (\d+) ops/sec ([\d.]+) seconds (\d+) operations;(.*)$`),
			func(d *dbBench, m []string) {
				d.now.benchmarks, d.latency = append(d.now.benchmarks, d.result(m)), nil
			}},
		{re(`^Microseconds per (\w+):$`), func(d *dbBench, m []string) {
			n := len(d.now.benchmarks)
			if n == 0 {
				d.leave(m[0])
				return
			}
			d.latency = &dbLatency{kind: m[1]}
			d.now.benchmarks[n-1].latencies = append(d.now.benchmarks[n-1].latencies, d.latency)
		}},
		{re(`^rocksdb\.stall\.micros COUNT : (\d+)$`), func(d *dbBench, m []string) {
			d.now.stall = rocksPrinted.value(rocksStall, numberOf(m[1]))
		}},
		{re(`^WARNING: (.*(?:slow|Optimization).*)$`), func(d *dbBench, m []string) {
			if !slices.ContainsFunc(d.res.Warnings, func(w Warning) bool { return w.Code == "dbBenchSlow" }) {
				d.warn("dbBenchSlow", "db_bench says: %s", m[1])
			}
		}},
	}
)

func (d *dbBench) readText(r *dbRun, text string) {
	// Histograms and statistics end in an empty line each. After them there are only the means of repeated benchmarks.
	r.cut = text != "" && !strings.HasSuffix(text, "\n") ||
		dbAfter.MatchString(text) && !strings.HasSuffix(dbRepeated.ReplaceAllString(text, ""), "\n\n")
	d.file, d.unread, d.now, d.latency = r.name, unreadLines{}, r, nil
	for row := range rows(text) {
		if !matched(d, dbLines, row) && (d.latency == nil || !matched(d.latency, dbLatencyLines, row)) &&
			dbUnread.MatchString(row) {
			d.leave(row)
		}
	}
	d.unread.warn(&d.res)
}

// result reads the line of a benchmark.
func (d *dbBench) result(m []string) *dbResult {
	b := &dbResult{name: m[1], seconds: numberOf(m[4]), operations: numberOf(m[5])}
	texts := []string{m[2], m[3], m[5]}
	metrics := []metric.Declaration{rocksAverage, rocksOps, rocksCount}
	if rate := dbData.FindStringSubmatch(m[6]); rate != nil {
		texts, metrics = append(texts, rate[1]), append(metrics, rocksData)
	} else if strings.Contains(m[6], "MB/s") {
		d.leave(m[0])
	}
	for i, of := range metrics {
		if v, err := strconv.ParseFloat(texts[i], 64); err == nil {
			b.figures = append(b.figures, of.Scalar(rocksPrinted.value(of, v)))
		}
	}
	if seen := dbSeen.FindStringSubmatch(m[6]); seen != nil {
		b.found, b.all = seen[1], seen[2]
	}
	return b
}

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
		last := r.name // whose the report by interval is
		switch {
		case len(r.benchmarks) == 0:
			d.warn("dbBenchTruncated", "%s: db_bench ended before its result%s", r.name, d.because())
		case r.cut:
			d.warn("dbBenchTruncated", "%s: the output ends within a histogram or the statistics: those that are whole are used",
				r.name)
		}
		for i, b := range r.benchmarks {
			last = b.name
			if slices.ContainsFunc(r.benchmarks[:i], func(o *dbResult) bool { return o.name == b.name }) {
				d.warn("outputUnread", "%s: the benchmark %s has several results: the first is used", r.name, b.name)
				continue
			}
			d.benchmark(r, b, suffix(b.name))
		}
		if !math.IsNaN(r.stall) {
			d.suffixed(rocksStall.Scalar(r.stall), suffix(r.name))
		}
		d.series(r, suffix(last))
	}
}

func (d *dbBench) suffixed(s metric.Scalar, suffix string) {
	s.Metric += suffix
	d.res.Scalars = append(d.res.Scalars, s)
}

// benchmark adds the figures of one benchmark.
func (d *dbBench) benchmark(r *dbRun, b *dbResult, suffix string) {
	for _, s := range b.figures {
		d.suffixed(s, suffix)
	}
	if b.found == "0" && b.all != "0" && b.name != "readmissing" {
		d.warn("dbBenchNotFound", "%s: none of %s keys was found: the database has other keys, or none", b.name, b.all)
	}
	n := int64(0)
	for _, l := range b.latencies {
		n += l.n
	}
	if float64(n) > b.operations { // the result of the benchmark that follows is missing
		d.warn("figuresMissing", "%s: %s has %.0f operations, its histograms %d: a line is missing", r.name, b.name,
			b.operations, n)
	}
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
		of.Name += suffix
		from := d.in.began(r.start)
		d.total(of, "service", from, from+inSeconds(max(b.seconds, 1e-3)), h)
	}
}
