package parser

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
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
	ycsbAllFailed = ycsbFailures("failed", "operations")

	ycsbOperations = []ycsbOperation{
		ycsbAll(),
		ycsbOf("READ", "read", "reads"),
		ycsbOf("UPDATE", "update", "updates"),
		ycsbOf("INSERT", "insert", "inserts"),
		ycsbOf("SCAN", "scan", "scans"),
		ycsbMeasured(ycsbPair, "readModifyWrite.", "readModifyWrite.ops", "readModifyWrite"+metric.Completed,
			"pairs of a read and an update", " (failed ones too)"),
	}
)

func ycsbAll() ycsbOperation {
	o := ycsbMeasured(ycsbTotal, "latency.", "tps", "operations", "all operations", " that succeeded")
	o.rate = o.rate.Principal(1)
	return o
}

func ycsbOf(printed, name, what string) ycsbOperation {
	o := ycsbMeasured(printed, name+".", name+".ops", name+metric.Completed, what, " that succeeded")
	o.failed = ycsbFailures(name+metric.Failed, what)
	return o
}

func ycsbFailures(name, what string) metric.Declaration {
	return declare(name, metric.Count, metric.Quantity, metric.Lower, what+" that failed")
}

// ycsbMeasured declares the metrics of an operation.
func ycsbMeasured(printed, prefix, rate, count, what, which string) ycsbOperation {
	o := ycsbOperation{name: printed,
		rate:  declare(rate, metric.PerSecond, metric.Rate, metric.Higher, what+which+" per second, and by interval"),
		count: declare(count, metric.Count, metric.Quantity, "", what+which)}
	for _, t := range ycsbTimes {
		o.times = append(o.times, declare(prefix+t.name, metric.Nanoseconds, t.kind, metric.Lower,
			fmt.Sprintf(t.meaning, what)))
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
	y := &ycsb{work: work{in: in}, rows: map[string]*ycsbRow{}, final: map[string]bool{}, series: map[string]*intervals{}}
	err := y.walk(func(name string) error { return y.lines(name, y.readLine) }, ".txt")
	if err != nil {
		return y.res, fmt.Errorf("ycsb: %w", err)
	}
	if len(y.rows) == 0 && y.step == 0 && !y.finished && len(y.res.Warnings) == 0 {
		return y.res, errors.New("ycsb: there is no report: name the file of go-ycsb's stdout (*.txt) among the outputs")
	}
	y.results()
	return y.res, nil
}

// ycsb is the work on one container's files.
type ycsb struct {
	work
	rows     map[string]*ycsbRow // the last of each operation
	finished bool                // the final report follows
	final    map[string]bool     // operations of the final report
	unread   unreadLines

	// The interval whose rows are read, in Unix ns; step is the length of whole ones, 0: unknown.
	began, from, to, step int64
	series                map[string]*intervals // by operation
}

// ycsbRow is what a report has of one operation since the start of the run.
type ycsbRow struct {
	count, rate float64
	us          []float64 // in the order of ycsbTimes
}

// Lines of go-ycsb and of the command of hack/workloads.
var (
	ycsbBegan    = regexp.MustCompile(`^Run began at (\d{9,10})\.(\d{9}), intervals of (\S+)$`)
	ycsbInterval = regexp.MustCompile(`^Interval ended at (\d{9,10})\.(\d{9})$`)
	ycsbFinished = regexp.MustCompile(`^Run finished, takes (\S+)$`)
	ycsbReport   = regexp.MustCompile(`^([A-Z_]+) +- Takes\(s\): \S+, Count: (\d{1,15}), OPS: ([\d.]+|NaN|[+-]Inf), ` +
		`Avg\(us\): (\d{1,12}), Min\(us\): (\d{1,12}), Max\(us\): (\d{1,12}), 50th\(us\): (\d{1,12}), ` +
		`90th\(us\): (\d{1,12}), 95th\(us\): (\d{1,12}), 99th\(us\): (\d{1,12}), 99.9th\(us\): (\d{1,12}), ` +
		`99.99th\(us\): (\d{1,12})$`)
)

// ycsbLeftOut are lines without figures.
var ycsbLeftOut = regexp.MustCompile(`^Using request distribution |^Connected to MongoDB!$`)

// ycsbError ends the name of a row of operations that failed.
const ycsbError = "_ERROR"

func (y *ycsb) readLine(row string) {
	if m := ycsbReport.FindStringSubmatch(row); m != nil {
		y.report(m[1], ycsbNumbers(m[2:]))
	} else if m := ycsbInterval.FindStringSubmatch(row); m != nil {
		y.from, y.to = y.to, ycsbUnix(m)
	} else if m := ycsbBegan.FindStringSubmatch(row); m != nil {
		step, err := time.ParseDuration(m[3])
		if err != nil || step < time.Millisecond {
			return
		}
		y.began, y.step = ycsbUnix(m), int64(step)
		y.from, y.to = y.began, y.began
	} else if m := ycsbFinished.FindStringSubmatch(row); m != nil {
		y.finished = true
		took, err := time.ParseDuration(m[1])
		if err != nil {
			took = 0
		}
		y.from, y.to = y.to, y.began+int64(took)
	} else if row != "" && !ycsbLeftOut.MatchString(row) {
		y.unread.add("stdout", row)
	}
}

// ycsbUnix returns the Unix time in ns of a matched line.
func ycsbUnix(m []string) int64 {
	seconds, _ := strconv.ParseInt(m[1], 10, 64) // digits all
	ns, _ := strconv.ParseInt(m[2], 10, 64)
	return seconds*int64(time.Second) + ns
}

func ycsbNumbers(texts []string) []float64 {
	list := make([]float64, len(texts))
	for i, text := range texts {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || v < 0 {
			v = math.NaN() // go-ycsb divides by a time that may be 0
		}
		list[i] = v
	}
	return list
}

// report takes a row: count, operations per second, and the times in µs.
func (y *ycsb) report(name string, figures []float64) {
	row := &ycsbRow{count: figures[0], rate: figures[1], us: figures[2:]}
	before := 0.0
	if known := y.rows[name]; known != nil {
		before = known.count
	}
	y.rows[name] = row
	if y.finished {
		y.final[name] = true
	}
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
	s := y.series[name]
	if s == nil {
		s = &intervals{Series: ycsbOperations[i].rate.Series(y.step)}
		y.series[name] = s
	}
	slice := (y.from - y.began + y.step/10) / y.step
	at := y.in.clock(y.began + slice*y.step)
	if k := len(s.Points); k > 0 && s.Points[k-1].At >= at || s.n() >= maxCells {
		return
	}
	s.add(at, op.Time(covered), n/(float64(covered)/float64(time.Second)))
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
		if s := y.series[o.name]; s != nil {
			y.res.Series = append(y.res.Series, s.all()...)
		}
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
