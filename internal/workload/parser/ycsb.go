package parser

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// ycsbOperation is what go-ycsb measures as one.
type ycsbOperation struct {
	name   string // as go-ycsb prints it
	rate   metric.Declaration
	count  metric.Declaration
	failed metric.Declaration   // none of the total and of pairs, whose parts fail
	times  []metric.Declaration // in the order of ycsbTimes
}

// ycsbTimes are the times of a row in the order in which they are printed.
var ycsbTimes = []struct {
	name    string
	kind    metric.Kind
	meaning string
}{
	{"average", metric.Level, "mean latency of %s (service)"},
	{"min", metric.Least, "the least latency of %s"}, {"max", metric.Greatest, "the greatest latency of %s"},
	{"p50", metric.Statistic, "50 %% of %s were as fast"}, {"p90", metric.Statistic, "90 %% of %s were as fast"},
	{"p95", metric.Statistic, "95 %% of %s were as fast"}, {"p99", metric.Statistic, "99 %% of %s were as fast"},
	{"p999", metric.Statistic, "99.9 %% of %s were as fast"}, {"p9999", metric.Statistic, "99.99 %% of %s were as fast"},
}

const (
	ycsbTotal = "TOTAL"
	ycsbPair  = "READ_MODIFY_WRITE"
)

var (
	ycsbAllFailed = faultsOf("failed", "operations that failed")

	ycsbOperations = []ycsbOperation{
		ycsbMeasured(ycsbTotal, "latency.", "tps", "operations", "all operations", " that succeeded").principal(),
		ycsbOf("READ", "read", "reads"),
		ycsbOf("UPDATE", "update", "updates"),
		ycsbOf("INSERT", "insert", "inserts"),
		ycsbOf("SCAN", "scan", "scans"),
		ycsbMeasured(ycsbPair, "readModifyWrite.", "readModifyWrite.ops", "readModifyWrite"+metric.Completed,
			"pairs of a read and an update", " (failed ones too)"),
	}
)

func (o ycsbOperation) principal() ycsbOperation {
	o.rate = o.rate.Principal(1)
	return o
}

func ycsbOf(printed, name, what string) ycsbOperation {
	o := ycsbMeasured(printed, name+".", name+".ops", name+metric.Completed, what, " that succeeded")
	o.failed = faultsOf(name+metric.Failed, what+" that failed")
	return o
}

// ycsbMeasured declares the metrics of an operation.
func ycsbMeasured(printed, prefix, rate, count, what, which string) ycsbOperation {
	o := ycsbOperation{name: printed,
		rate: rateOf(rate, what+which+" per second, and by interval"), count: countOf(count, what+which)}
	for _, t := range ycsbTimes {
		o.times = append(o.times, timeOf(prefix+t.name, t.kind, fmt.Sprintf(t.meaning, what)))
	}
	return o
}

var ycsbMetrics = func() (list []metric.Declaration) {
	for _, o := range ycsbOperations {
		list = append(list, o.rate, o.count)
		list = append(list, o.times...)
		if o.failed.Name != "" {
			list = append(list, o.failed)
		}
	}
	return append(list, ycsbAllFailed)
}()

// Ycsb reads the stdout (*.txt) of go-ycsb 1.0: the final report, and the reports of intervals, which count from the
// start too. Without the lines that say when intervals ended, which the command of hack/workloads prints and that of
// go-ycsb does not, there are no series.
//
// The scalars are the figures of the last report. A latency begins when the operation is sent, with a target too: it is
// the service time, as a level, since go-ycsb prints no distribution.
func Ycsb(in Input) (Result, error) {
	y := &ycsb{work: work{in: in, file: "stdout"}, rows: map[string]*ycsbRow{}, final: map[string]bool{},
		last: map[string]op.Time{}}
	return y.run("ycsb", "there is no report: name the file of go-ycsb's stdout (*.txt) among the outputs", y.read,
		y.results)
}

func (y *ycsb) read() (bool, error) {
	err := y.walk(func(name string) error {
		return y.lines(name, func(row string) {
			if !matched(y, ycsbLines, row) {
				y.leave(row)
			}
		})
	}, ".txt")
	return len(y.rows) > 0 || y.step > 0 || y.finished || len(y.res.Warnings) > 0, err
}

// ycsb is the work on one container's files.
type ycsb struct {
	work
	rows     map[string]*ycsbRow // the last of each operation
	finished bool                // the final report follows
	final    map[string]bool     // operations of the final report

	// The interval whose rows are read, in Unix ns; step is the length of whole ones, 0: unknown.
	began, from, to, step int64
	last                  map[string]op.Time // when the last whole one of each operation began
}

// ycsbRow is what a report has of one operation since the start of the run.
type ycsbRow struct {
	count, rate float64
	us          []float64 // in the order of ycsbTimes
}

// ycsbLines are the lines of go-ycsb and of the command of hack/workloads. Those that are left out have no figures.
var ycsbLines = []linePattern[*ycsb]{
	{re(`^([A-Z_]+) +- Takes\(s\): \S+, Count: (\d{1,15}), OPS: ([\d.]+|NaN|[+-]Inf), ` +
		`Avg\(us\): (\d{1,12}), Min\(us\): (\d{1,12}), Max\(us\): (\d{1,12}), 50th\(us\): (\d{1,12}), ` +
		`90th\(us\): (\d{1,12}), 95th\(us\): (\d{1,12}), 99th\(us\): (\d{1,12}), 99.9th\(us\): (\d{1,12}), ` +
		`99.99th\(us\): (\d{1,12})$`), (*ycsb).report},
	{re(`^Interval ended at (\d{9,10})\.(\d{9})$`), func(y *ycsb, m []string) { y.from, y.to = y.to, ycsbUnix(m) }},
	{re(`^Run began at (\d{9,10})\.(\d{9}), intervals of (\S+)$`), func(y *ycsb, m []string) {
		if step, err := time.ParseDuration(m[3]); err == nil && step >= time.Millisecond {
			y.began, y.step = ycsbUnix(m), int64(step)
			y.from, y.to = y.began, y.began
		}
	}},
	{re(`^Run finished, takes (\S+)$`), func(y *ycsb, m []string) {
		took, _ := time.ParseDuration(m[1]) // or 0
		y.finished, y.from, y.to = true, y.to, y.began+int64(took)
	}},
	{re(`^$|^Using request distribution |^Connected to MongoDB!$`), nil},
}

// ycsbError ends the name of a row of operations that failed.
const ycsbError = "_ERROR"

// ycsbUnix returns the Unix time in ns of a matched line.
func ycsbUnix(m []string) int64 { return unixNano(m[1], m[2]) }

// report takes a row: name, count, operations per second, and the times in µs.
func (y *ycsb) report(m []string) {
	name, row, before := m[1], &ycsbRow{count: numberOf(m[2])}, 0.0
	var err error
	if row.rate, err = strconv.ParseFloat(m[3], 64); err != nil {
		row.rate = math.NaN() // as go-ycsb prints, where it divides by a time that is 0
	}
	for _, us := range m[4:] {
		row.us = append(row.us, numberOf(us))
	}
	if known := y.rows[name]; known != nil {
		before = known.count
	}
	y.rows[name] = row
	y.final[name] = y.finished
	y.point(name, row.count-before)
}

// point adds the rate of an interval in which an operation was done n times, at its slice of the grid that begins with
// the run. An interval that is longer than two slices is that of a go-ycsb that was suspended in its first one.
func (y *ycsb) point(name string, n float64) {
	i := slices.IndexFunc(ycsbOperations, func(o ycsbOperation) bool { return o.name == name })
	covered := y.to - y.from
	if i < 0 || y.step == 0 || n < 0 || covered < y.step/10 {
		return
	}
	if covered > 2*y.step {
		covered = y.step
	}
	slice := (y.from - y.began + y.step/10) / y.step
	at := y.in.clock(y.began + slice*y.step)
	if last, ok := y.last[name]; ok && last >= at || slice >= maxCells {
		return
	}
	if !metric.Late(covered, y.step) {
		y.last[name] = at
	}
	y.interval(ycsbOperations[i].rate, op.Time(y.step), at, op.Time(covered), n/(float64(covered)/float64(time.Second)))
}

// results adds the metrics and warnings.
func (y *ycsb) results() {
	if !y.finished {
		y.warn("ycsbTruncated", "go-ycsb ended before its final report: the figures are those of its last interval")
	}
	y.unread.warn(&y.res)
	y.agree()
	if y.finished {
		for _, name := range slices.Sorted(maps.Keys(y.rows)) {
			if !y.final[name] {
				y.warn("ycsbTruncated", "the final report has no row %s: the figures are those of its last interval", name)
			}
		}
	}
	var failures []string
	failed := 0.0
	for _, o := range ycsbOperations {
		if r := y.rows[o.name]; r != nil {
			y.figures(&o, r)
		}
		if r := y.rows[o.name+ycsbError]; r != nil && o.failed.Name != "" {
			failed += r.count
			failures = append(failures, fmt.Sprintf("%s %.0f", o.name, r.count))
			y.scalar(o.failed, r.count)
		}
	}
	if failed > 0 {
		y.scalar(ycsbAllFailed, failed)
		y.warn("ycsbFailed", "%.0f operations failed, they have no latency: %s", failed, strings.Join(failures, ", "))
	}
}

// agree compares the number of all operations with those of the rows of which it is the sum, of an interval to 2 %: its
// rows are counted while operations end.
func (y *ycsb) agree() {
	total, parts := 0.0, 0.0
	for name, r := range y.rows {
		switch {
		case name == ycsbTotal:
			total = r.count
		case name != ycsbPair && !strings.HasSuffix(name, ycsbError):
			parts += r.count
		}
	}
	if off := math.Abs(total - parts); off > 0 && y.finished || off > total/50 {
		y.warn("figuresMissing", "TOTAL has %.0f operations, the rows of its parts %.0f: rows are missing", total, parts)
	}
}

// figures adds those of a row.
func (y *ycsb) figures(o *ycsbOperation, r *ycsbRow) {
	if finite(r.rate) {
		y.scalar(o.rate, r.rate)
	}
	y.scalar(o.count, r.count)
	for i, t := range o.times {
		y.scalar(t, r.us[i]*1e3)
	}
}
