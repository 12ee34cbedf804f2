package parser

import (
	"io/fs"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ycsbPrintedRow is the row of an operation.
const ycsbPrintedRow = ` +- Takes\(s\): \S+, Count: (\d+), OPS: (\S+), Avg\(us\): (\d+), Min\(us\): (\d+), ` +
	`Max\(us\): (\d+), 50th\(us\): (\d+), 90th\(us\): (\d+), 95th\(us\): (\d+), 99th\(us\): (\d+), 99.9th\(us\): (\d+), ` +
	`99.99th\(us\): (\d+)$`

// ycsbPrintedOf are the metrics of that row.
func ycsbPrintedOf(count, rate, prefix string) string {
	return count + " " + rate + strings.ReplaceAll(" @average*1e3 @min*1e3 @max*1e3 @p50*1e3 @p90*1e3 @p95*1e3 @p99*1e3 "+
		"@p999*1e3 @p9999*1e3", "@", prefix)
}

// reports are the lines of the tools' reports for people, as the tools print them, with the metrics of their numbers:
// NAME*UNIT, if a printed 1 means UNIT. $1 stands for the first group, such as a name.
var reports = []struct {
	parser string
	skip   []string // runs of several reports, which have a test of their own, or with a part of the figures
	last   bool     // of several such lines the last counts, else the first
	lines  map[string]string
	others []string // metrics that are no line of the report
}{
	{parser: "pgbench", lines: map[string]string{
		`^tps = ([\d.]+) \(`:                                             "tps",
		`^latency average = ([\d.]+) ms$`:                                "latency.average*1e6",
		`^latency stddev = ([\d.]+) ms$`:                                 "latency.stddev*1e6",
		`^initial connection time = ([\d.]+) ms$`:                        "connect*1e6",
		`^average connection time = ([\d.]+) ms$`:                        "reconnect*1e6",
		`^rate limit schedule lag: avg ([\d.]+) \(max ([\d.]+)\)`:        "lag.average*1e6 lag.max*1e6",
		`^number of transactions actually processed: (\d+)`:              "transaction.ok",
		`^number of failed transactions: (\d+) `:                         "transaction.failed",
		`^number of transactions skipped: (\d+) `:                        "transaction.lost",
		`^number of transactions above the \S+ ms latency limit: (\d+)/`: "aboveLimit",
		`^number of transactions retried: (\d+) `:                        "retried",
		`^total number of retries: (\d+)$`:                               "retries",
	}},
	{parser: "sysbench", skip: []string{"fileio-checkpoints", "fileio-checkpoints-histogram",
		"fileio-intervals-checkpoints"}, lines: map[string]string{
		`^ +reads/s: +(\S+)$`: "read.iops", `^ +writes/s: +(\S+)$`: "write.iops", `^ +fsyncs/s: +(\S+)$`: "sync.iops",
		`^ +read, MiB/s: +(\S+)$`: "read.bandwidth*1048576", `^ +written, MiB/s: +(\S+)$`: "write.bandwidth*1048576",
		`^ +total number of events: +(\d+)$`: "events", `^ +min: +(\S+)$`: "latency.min*1e6",
		`^ +avg: +(\S+)$`: "latency.average*1e6", `^ +max: +(\S+)$`: "latency.max*1e6",
		`^ +95th percentile: +(\S+)$`: "latency.p95*1e6",
	}},
	{parser: "sysbench-oltp", lines: map[string]string{
		`^ +transactions: +(\d+) +\((\S+) per sec\.\)$`:   "transaction.ok tps",
		`^ +queries: +(\d+) +\((\S+) per sec\.\)$`:        "queries qps",
		`^ +ignored errors: +(\d+) +\((\S+) per sec\.\)$`: "errors errors.rate",
		`^ +reconnects: +(\d+) `:                          "reconnects",
		`^ +read: +(\d+)$`:                                "queries.read", `^ +write: +(\d+)$`: "queries.write",
		`^ +other: +(\d+)$`: "queries.other", `^ +min: +(\S+)$`: "latency.min*1e6",
		`^ +avg: +(\S+)$`: "latency.average*1e6", `^ +max: +(\S+)$`: "latency.max*1e6",
		`^ +95th percentile: +(\S+)$`: "latency.p95*1e6",
	}},
	{parser: "redis-benchmark", lines: map[string]string{
		`^"SET","([\d.]+)",".*","([\d.]+)","[\d.]+","([\d.]+)","([\d.]+)"$`: "set.rps set.latency.p50*1e6 " +
			"set.latency.p99*1e6 set.latency.max*1e6",
		`^"GET","([\d.]+)",".*","([\d.]+)","[\d.]+","([\d.]+)","([\d.]+)"$`: "get.rps get.latency.p50*1e6 " +
			"get.latency.p99*1e6 get.latency.max*1e6",
		`^"SET key value","([\d.]+)",".*","([\d.]+)","[\d.]+","([\d.]+)","([\d.]+)"$`: "command.rps " +
			"command.latency.p50*1e6 command.latency.p99*1e6 command.latency.max*1e6",
		`SET: ([\d.]+) requests per second, p50=([\d.]+) msec`: "set.rps set.latency.p50*1e6",
		`GET: ([\d.]+) requests per second, p50=([\d.]+) msec`: "get.rps get.latency.p50*1e6",
	}, others: []string{"set.rps", "get.rps", "command.rps"}},
	{parser: "ycsb", last: true, lines: map[string]string{
		"^TOTAL" + ycsbPrintedRow:             ycsbPrintedOf("operations", "tps", "latency."),
		"^READ" + ycsbPrintedRow:              ycsbPrintedOf("read.ok", "read.ops", "read."),
		"^UPDATE" + ycsbPrintedRow:            ycsbPrintedOf("update.ok", "update.ops", "update."),
		"^INSERT" + ycsbPrintedRow:            ycsbPrintedOf("insert.ok", "insert.ops", "insert."),
		"^SCAN" + ycsbPrintedRow:              ycsbPrintedOf("scan.ok", "scan.ops", "scan."),
		"^READ_MODIFY_WRITE" + ycsbPrintedRow: ycsbPrintedOf("readModifyWrite.ok", "readModifyWrite.ops", "readModifyWrite."),
		`^READ_ERROR - .* Count: (\d+),`:      "read.failed", `^UPDATE_ERROR - .* Count: (\d+),`: "update.failed",
	}, others: []string{"failed"}},
	{parser: "wrk", skip: []string{"no-script"}, lines: map[string]string{
		`^ +Latency +([\d.]+\S+) +([\d.]+\S+) +([\d.]+\S+) `: "latency.average latency.stddev latency.max",
		`^ +50% +([\d.]+\S+) *$`:                             "latency.p50", `^ +75% +([\d.]+\S+) *$`: "latency.p75",
		`^ +90% +([\d.]+\S+) *$`: "latency.p90", `^ +99% +([\d.]+\S+) *$`: "latency.p99",
		`^Requests/sec: +([\d.]+)$`:                 "rps",
		`^Transfer/sec: +([\d.]+\S+)$`:              "request.bandwidth",
		`^ +\d+ requests in \S+, ([\d.]+\S+) read$`: "request.bytes",
		`^ +Non-2xx or 3xx responses: (\d+)$`:       "request.failed",
		`^ +Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$`: "errors.connect errors.read " +
			"errors.write errors.timeout",
	}, others: []string{"request.ok", "request.failed", "errors.connect", "errors.read", "errors.write",
		"errors.timeout"}},
	{parser: "etcd", skip: []string{"rounds"}, lines: map[string]string{
		`^  Slowest:\t(\S+) secs\.$`: "latency.max*1e9", `^  Fastest:\t(\S+) secs\.$`: "latency.min*1e9",
		`^  Average:\t(\S+) secs\.$`: "latency.average*1e9", `^  Stddev:\t(\S+) secs\.$`: "latency.stddev*1e9",
		`^  Requests/sec:\t(\S+)$`: "rps", `^  50% in (\S+) secs\.$`: "latency.p50*1e9",
		`^  90% in (\S+) secs\.$`: "latency.p90*1e9", `^  95% in (\S+) secs\.$`: "latency.p95*1e9",
		`^  99% in (\S+) secs\.$`: "latency.p99*1e9", `^  99\.9% in (\S+) secs\.$`: "latency.p999*1e9",
		`^  \[(\d+)\]\t`: "failed",
	}, others: []string{"puts"}},
	{parser: "db_bench", lines: map[string]string{
		`^(\S+) +: +(\S+) micros/op (\d+) ops/sec \S+ seconds (\d+) operations;`: "latency.average/$1*1e3 ops/$1 " +
			"operations/$1",
		`^(\S+) +: .* operations; +(\S+) MB/s`:   "dataRate/$1*1048576",
		`^rocksdb\.stall\.micros COUNT : (\d+)$`: "stall*1e3",
	}, others: []string{"allOps", "stall/"}},
	{parser: "megahit", lines: map[string]string{
		` - (\d+) contigs, total (\d+) bp, .*N50 (\d+) bp$`: "contigs bases n50",
		` - ALL DONE\. Time elapsed: (\S+) seconds *$`:      "elapsed*1e9",
	}, others: []string{"stage."}},
}

// printedUnits are those that wrk prints after a number.
var printedUnits = map[string]float64{"": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "KB": 1 << 10, "MB": 1 << 20,
	"GB": 1 << 30}

var printedNumber = regexp.MustCompile(`^([\d.]+)([a-zA-Z]*)$`)

// TestReports compares each figure with what the tool prints for people, to the digit that it prints. Each is there.
func TestReports(t *testing.T) {
	for _, c := range reports {
		corpus := runCorpora[slices.IndexFunc(runCorpora, func(r runCorpus) bool { return r.parser == c.parser })]
		compared := 0
		for _, run := range corpusRuns(t, corpus.runs) {
			name := strings.TrimSuffix(filepath.Base(run), ".txt")
			if slices.Contains(c.skip, name) {
				continue
			}
			files := runFiles(t, run)
			r, err := Parsers(nil)[c.parser](Input{Files: files, AtWall: runClock})
			if err != nil {
				continue // TestRunContract counts it as refused
			}
			want := map[string]string{}
			texts, err := fs.Glob(files, corpus.report)
			must(t, err)
			for _, text := range texts {
				for row := range strings.Lines(string(files[text].Data)) {
					for pattern, metrics := range c.lines {
						printedOf(strings.TrimRight(row, "\n"), regexp.MustCompile(pattern), metrics, c.last, want)
					}
				}
			}
			got := scalarsOf(r)
			for metric, printed := range want {
				name, unit, _ := strings.Cut(metric, "*")
				value, ok := got[name]
				if !ok { // of a single benchmark
					name, _, _ = strings.Cut(name, "/")
					value = got[name]
				}
				delete(got, name)
				compared++
				if !samePrinted(value, unit, printed) {
					t.Errorf("%s %s: %s is %v, printed is %s", c.parser, run, metric, value, printed)
				}
			}
			for name := range got {
				if !slices.ContainsFunc(c.others, func(o string) bool { return strings.HasPrefix(name, o) }) {
					t.Errorf("%s %s: %s is not a number of the report", c.parser, run, name)
				}
			}
		}
		if compared == 0 {
			t.Errorf("%s: no figure was compared", c.parser)
		}
	}
}

// printedOf adds the numbers of a line of a report by their metrics.
func printedOf(row string, pattern *regexp.Regexp, metrics string, last bool, to map[string]string) {
	m := pattern.FindStringSubmatch(row)
	if m == nil {
		return
	}
	numbers := m[1:]
	if strings.Contains(metrics, "$1") {
		metrics, numbers = strings.ReplaceAll(metrics, "$1", m[1]), m[2:]
	}
	for i, metric := range strings.Fields(metrics) {
		if _, known := to[metric]; last || !known {
			to[metric] = numbers[i]
		}
	}
}

// samePrinted reports whether a value is what is printed, to its last digit; a metric in ns is whole.
func samePrinted(value float64, unit, printed string) bool {
	m := printedNumber.FindStringSubmatch(printed)
	if m == nil {
		return false
	}
	one := printedUnits[m[2]]
	if u, err := strconv.ParseFloat(unit, 64); err == nil {
		one *= u
	}
	_, decimals, _ := strings.Cut(m[1], ".")
	number, _ := strconv.ParseFloat(m[1], 64)
	half := 0.5 * math.Pow10(-len(decimals))
	if one == 1e9 {
		half = max(half, 0.5e-9)
	}
	return math.Abs(value/one-number) <= half*(1+1e-6)+1e-12*number
}
