package parser

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The metrics of Filebench. They have the values that it prints.
var (
	fbOps = declare("ops", metric.PerSecond, metric.Rate, metric.Higher,
		"flowops per second that are I/O: transfers, syncs and operations on files").Principal(1)
	fbReads  = declare("reads", metric.PerSecond, metric.Rate, metric.Higher, "reads per second; whole ones, as printed")
	fbWrites = declare("writes", metric.PerSecond, metric.Rate, metric.Higher, "writes per second; whole ones, as printed")
	fbData   = declare("dataRate", metric.BytesPerSecond, metric.Rate, metric.Higher,
		"bytes read and written per second (mb/s as printed, which are MiB)").Principal(2)
	fbCount   = declare("operations", metric.Count, metric.Quantity, "", "number of these flowops")
	fbAverage = declare("latency.average", metric.Nanoseconds, metric.Level, metric.Lower,
		"ms/op: mean time of these flowops")
	fbMin = declare("latency.min", metric.Nanoseconds, metric.Least, metric.Lower, "least time, of each flowop only")
	fbMax = declare("latency.max", metric.Nanoseconds, metric.Greatest, metric.Lower, "greatest time, of each flowop only")

	filebenchMetrics = []metric.Declaration{fbOps, fbReads, fbWrites, fbData, fbCount, fbAverage, fbMin, fbMax}
)

// Filebench reads the stdout (*.txt) of Filebench 1.5. The figures of a flowop have its name after a slash:
// "ops/readfile1".
//
// With psrun PERIOD the statistics are printed each PERIOD seconds, from the start of the run on; their differences are
// the series "ops". The last statistics are the result, also of a run that was ended early; then there is a warning.
// Filebench prints no percentiles. Times are those of the threads' calls: the view is that of the service.
func Filebench(in Input) (Result, error) {
	f := filebench{work: work{in: in}}
	found := false
	err := f.walk(func(name string) error {
		if found {
			return nil
		}
		found = true
		return f.lines(name, f.line)
	}, ".txt")
	switch {
	case err != nil:
		return f.res, fmt.Errorf("filebench: %w", err)
	case !found:
		return f.res, errors.New("filebench: there is no stdout of it: name its file (*.txt) among the outputs")
	}
	f.results()
	return f.res, nil
}

// filebench is the work on one container's files.
type filebench struct {
	work
	running float64    // when the run began, in seconds since the program's start
	ran     bool       // the run took its time
	ended   bool       // with the last statistics
	failed  string     // the first message of a failure
	now     []fbFlowop // of statistics that are not complete yet
	last    *fbStatistics
	series  intervals
	unread  unreadLines
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

// Lines of the output. Numbers may be padded with spaces.
var (
	fbVersion = regexp.MustCompile(`^Filebench Version (\S+)`)
	fbBegin   = regexp.MustCompile(`^([\d.]+): Running\.\.\.$`)
	fbTook    = regexp.MustCompile(`^[\d.]+: Run took \d+ seconds`)
	fbTable   = regexp.MustCompile(`^[\d.]+: Per-Operation Breakdown$`)
	fbLine    = regexp.MustCompile(`^(\S+)\s+(\d+)ops\s+(\d+)ops/s\s+([\d.]+)mb/s\s+([\d.]+)ms/op` +
		`(?:\s+\[\s*([\d.]+)ms\s+-\s+([\d.]+)ms\])?$`)
	fbSummary = regexp.MustCompile(`^([\d.]+): IO Summary:\s+(\d+) ops\s+([\d.]+) ops/s\s+(\d+)/(\d+) rd/wr\s+` +
		`([\d.]+)mb/s\s+([\d.]+)ms/op$`)
	fbFailed = regexp.MustCompile(`Unexpected Process termination.*|NO VALID RESULTS!.*|Failed to .*|` +
		`.*[Nn]o space left.*|.*syntax error.*|Warning: no run command.*`)
)

func (f *filebench) line(row string) {
	if m := fbSummary.FindStringSubmatch(row); m != nil {
		f.statistics(m[1:])
	} else if m := fbLine.FindStringSubmatch(row); m != nil {
		f.now = append(f.now, m[1:])
	} else if strings.Contains(row, "ops/s") {
		f.unread.add("stdout", row)
	} else if fbTable.MatchString(row) {
		f.now = nil
	} else if m := fbBegin.FindStringSubmatch(row); m != nil {
		f.running = fbNumber(m[1])
	} else if fbTook.MatchString(row) {
		f.ran = true
	} else if m := fbVersion.FindStringSubmatch(row); m != nil && m[1][:min(3, len(m[1]))] != "1.5" {
		f.warn("outputUnread", "Filebench %s prints other figures: want version 1.5", m[1])
	} else if m := fbFailed.FindString(row); m != "" && f.failed == "" {
		f.failed = m[:min(len(m), 200)]
	}
}

// statistics takes the line that ends statistics.
func (f *filebench) statistics(m []string) {
	s := &fbStatistics{at: fbNumber(m[0]), ops: fbNumber(m[1]), summary: m[1:], flowops: f.now}
	from, before := f.running, 0.0
	if f.last != nil {
		from, before = f.last.at, f.last.ops
	}
	if s.at <= from || s.ops < before {
		f.warn("outputUnread", "the statistics at %s s do not follow those before", m[0])
		return
	}
	f.ended = f.ran
	f.last, f.now = s, nil
	if f.series.Step == 0 {
		f.series.Series = fbOps.Series(int64(fbTime(s.at - from)))
	}
	f.series.add(f.in.Started+fbTime(from), fbTime(s.at-from), (s.ops-before)/(s.at-from))
}

// maxFBSeconds is the greatest accepted time.
const maxFBSeconds = 1 << 31

// fbNumber of digits; 0: none, or more than is accepted.
func fbNumber(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v > 1<<53 {
		return 0
	}
	return v
}

func fbTime(seconds float64) op.Time {
	return op.Time(min(seconds, maxFBSeconds) * float64(time.Second))
}

// results adds the figures of the last statistics.
func (f *filebench) results() {
	reason := ""
	if f.failed != "" {
		reason = ": " + f.failed
	}
	if !f.ended {
		when := "before its result"
		if f.last != nil {
			when = fmt.Sprintf("early: figures are those of its first %.0f s", f.last.at-f.running)
		}
		f.warn("filebenchTruncated", "Filebench ended %s%s", when, reason)
	}
	if f.last == nil {
		return
	}
	s := f.last.summary
	f.add("", []metric.Declaration{fbCount, fbOps, fbReads, fbWrites, fbData, fbAverage}, s)
	var names []string
	for _, x := range f.last.flowops {
		if slices.Contains(names, x[0]) {
			f.warn("outputUnread", "the flowop %s is listed twice: the first is used", x[0])
			continue
		}
		names = append(names, x[0])
		list := []metric.Declaration{fbCount, fbOps, fbData, fbAverage, fbMin, fbMax}
		if x[1] == "0" {
			list = list[:3] // no latency
		}
		f.add("/"+x[0], list, x[1:])
	}
	f.unread.warn(&f.res)
	f.agree()
	if f.series.n() > 1 {
		f.res.Series = append(f.res.Series, f.series.all()...)
	}
}

// agree compares the operations of the summary with the sum over its flowops, to the rounding of their rates.
func (f *filebench) agree() {
	var sum float64
	for _, x := range f.last.flowops {
		sum += fbNumber(x[1])
	}
	if sum != f.last.ops {
		f.warn("filebenchDiffers", "the summary has %.0f operations, its flowops %.0f: lines are missing", f.last.ops, sum)
	}
}

// fbUnits are what one printed unit is, where it is not one of the metric's.
var fbUnits = map[string]float64{fbData.Name: 1 << 20, fbAverage.Name: 1e6, fbMin.Name: 1e6, fbMax.Name: 1e6}

func (f *filebench) add(suffix string, list []metric.Declaration, fields []string) {
	for i, d := range list {
		if fields[i] == "" {
			continue // not printed
		}
		v := fbNumber(fields[i])
		if unit, ok := fbUnits[d.Name]; ok {
			v *= unit
		}
		s := d.Scalar(v)
		if s.Metric += suffix; suffix != "" {
			s.Rank = 0
		}
		s.From, s.To = f.in.Started+fbTime(f.running), f.in.Started+fbTime(f.last.at)
		f.res.Scalars = append(f.res.Scalars, s)
	}
}
