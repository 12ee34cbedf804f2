package parser

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The metrics of Filebench. They have the values that it prints.
var (
	fbOps     = rateOf("ops", "flowops per second that are I/O: transfers, syncs and operations on files").Principal(1)
	fbReads   = rateOf("reads", "reads per second; whole ones, as printed")
	fbWrites  = rateOf("writes", "writes per second; whole ones, as printed")
	fbData    = bandwidthOf("dataRate", "bytes read and written per second (mb/s as printed, which are MiB)").Principal(2)
	fbCount   = countOf("operations", "number of these flowops")
	fbAverage = timeOf("latency.average", metric.Level, "ms/op: mean time of these flowops")
	fbMin     = timeOf("latency.min", metric.Least, "least time, of each flowop only")
	fbMax     = timeOf("latency.max", metric.Greatest, "greatest time, of each flowop only")

	filebenchMetrics = []metric.Declaration{fbOps, fbReads, fbWrites, fbData, fbCount, fbAverage, fbMin, fbMax}

	// The columns of the summary and of a flowop.
	fbSummaryColumns = []metric.Declaration{fbCount, fbOps, fbReads, fbWrites, fbData, fbAverage}
	fbFlowopColumns  = []metric.Declaration{fbCount, fbOps, fbData, fbAverage, fbMin, fbMax}
)

// Filebench reads the stdout (*.txt) of Filebench 1.5. The figures of a flowop have its name after a slash:
// "ops/readfile1".
//
// With psrun PERIOD the statistics are printed each PERIOD seconds, from the start of the run on; their differences are
// the series "ops". The last statistics are the result, also of a run that was ended early; then there is a warning.
// Filebench prints no percentiles. Times are those of the threads' calls: the view is that of the service.
func Filebench(in Input) (Result, error) {
	f := &filebench{work: work{in: in, file: "stdout"}}
	return f.run("filebench", "there is no stdout of it: name its file (*.txt) among the outputs",
		func() (bool, error) { return f.first(".txt", func(row string) { matched(f, filebenchLines, row) }) }, f.results)
}

// filebench is the work on one container's files.
type filebench struct {
	work
	running float64    // when the run began, in seconds since the program's start
	ran     bool       // the run took its time
	ended   bool       // with the last statistics
	now     []fbFlowop // of statistics that are not complete yet
	last    *fbStatistics
	step    op.Time // of the first statistics
	n       int     // of statistics
}

// fbStatistics are statistics since the start of the run.
type fbStatistics struct {
	at      float64 // seconds since the program's start
	ops     float64
	summary []string // fields of the line
	flowops []fbFlowop
}

// fbFlowop has the fields of a flowop's line: name, ops, ops/s, mb/s, ms/op, and, if printed, least and greatest ms.
type fbFlowop []string

// filebenchLines are the lines of the output that are read; others have no figures. Numbers may be padded with spaces.
var filebenchLines = []linePattern[*filebench]{
	{re(`^([\d.]+): IO Summary:\s+(\d+) ops\s+([\d.]+) ops/s\s+(\d+)/(\d+) rd/wr\s+([\d.]+)mb/s\s+([\d.]+)ms/op$`),
		(*filebench).statistics},
	{re(`^(\S+)\s+(\d+)ops\s+(\d+)ops/s\s+([\d.]+)mb/s\s+([\d.]+)ms/op` +
		`(?:\s+\[\s*([\d.]+)ms\s+-\s+([\d.]+)ms\])?$`), func(f *filebench, m []string) { f.now = append(f.now, m[1:]) }},
	{re(`^.*ops/s.*$`), func(f *filebench, m []string) { f.leave(m[0]) }},
	{re(`^[\d.]+: Per-Operation Breakdown$`), func(f *filebench, _ []string) { f.now = nil }},
	{re(`^([\d.]+): Running\.\.\.$`), func(f *filebench, m []string) { f.running = numberOf(m[1]) }},
	{re(`^[\d.]+: Run took \d+ seconds`), func(f *filebench, _ []string) { f.ran = true }},
	{re(`^Filebench Version (\S+)`), func(f *filebench, m []string) {
		if !strings.HasPrefix(m[1], "1.5") {
			f.warn("outputUnread", "Filebench %s prints other figures: want version 1.5", m[1])
		}
	}},
	{re(`Unexpected Process termination.*|NO VALID RESULTS!.*|Failed to .*|.*[Nn]o space left.*|.*syntax error.*|` +
		`Warning: no run command.*`), func(f *filebench, m []string) { f.fail(m[0]) }},
}

// statistics takes the line that ends statistics.
func (f *filebench) statistics(m []string) {
	s := &fbStatistics{at: numberOf(m[1]), ops: numberOf(m[2]), summary: m[2:], flowops: f.now}
	from, before := f.running, 0.0
	if f.last != nil {
		from, before = f.last.at, f.last.ops
	}
	if s.at <= from || s.ops < before {
		f.warn("outputUnread", "the statistics at %s s do not follow those before", m[1])
		return
	}
	f.ended, f.last, f.now = f.ran, s, nil
	long := inSeconds(s.at - from)
	if f.n++; f.n == 1 {
		f.step = long
	}
	f.interval(fbOps, f.step, f.in.Started+inSeconds(from), long, (s.ops-before)/(s.at-from))
}

// results adds the figures of the last statistics.
func (f *filebench) results() {
	if !f.ended {
		when := "before its result"
		if f.last != nil {
			when = fmt.Sprintf("early: figures are those of its first %.0f s", f.last.at-f.running)
		}
		f.warn("filebenchTruncated", "Filebench ended %s%s", when, f.because())
	}
	if f.last == nil {
		return
	}
	f.add("", fbSummaryColumns, f.last.summary)
	var names []string
	var sum float64
	for _, x := range f.last.flowops {
		sum += numberOf(x[1])
		if slices.Contains(names, x[0]) {
			f.warn("outputUnread", "the flowop %s is listed twice: the first is used", x[0])
			continue
		}
		names = append(names, x[0])
		columns := fbFlowopColumns
		if x[1] == "0" {
			columns = columns[:3] // no latency
		}
		f.add("/"+x[0], columns, x[1:])
	}
	f.unread.warn(&f.res)
	if sum != f.last.ops {
		f.warn("filebenchDiffers", "the summary has %.0f operations, its flowops %.0f: lines are missing", f.last.ops, sum)
	}
	if f.n < 2 {
		f.res.Series = nil
	}
}

// add adds the figures of a line.
func (f *filebench) add(suffix string, columns []metric.Declaration, fields []string) {
	for i, d := range columns {
		if fields[i] == "" {
			continue // not printed
		}
		s := d.Scalar(inMs.value(d, numberOf(fields[i])))
		if s.Metric += suffix; suffix != "" {
			s.Rank = 0
		}
		s.From, s.To = f.in.Started+inSeconds(f.running), f.in.Started+inSeconds(f.last.at)
		f.res.Scalars = append(f.res.Scalars, s)
	}
}
