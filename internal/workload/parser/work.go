package parser

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// work is what every parser of a run works on: the files of one container, and what is made of them.
type work struct {
	in     Input
	res    Result
	file   string // whose lines are read, as messages name it
	unread unreadLines
	failed string // the first message of a failure
}

// warn adds a warning, each once.
func (w *work) warn(code, format string, args ...any) {
	w.add(Warning{Code: code, Message: fmt.Sprintf(format, args...)})
}

func (w *work) add(x Warning) {
	if !slices.Contains(w.res.Warnings, x) {
		w.res.Warnings = append(w.res.Warnings, x)
	}
}

// maxReason bounds a message of a failure, in bytes.
const maxReason = 200

// fail keeps the first message of a failure.
func (w *work) fail(message string) {
	if w.failed == "" {
		w.failed = message[:min(len(message), maxReason)]
	}
}

// because is the end of a message about a failure: its reason, if one is known.
func (w *work) because() string {
	if w.failed == "" {
		return ""
	}
	return ": " + w.failed
}

// scalar adds a figure, each once.
func (w *work) scalar(of metric.Declaration, v float64) {
	if !w.res.has(of) {
		w.res.Scalars = append(w.res.Scalars, of.Scalar(v))
	}
}

// figure takes a figure of a line.
func (w *work) figure(of metric.Declaration, v float64) { w.scalar(of, v) }

// leave takes a line that is not understood.
func (w *work) leave(row string) { w.unread.add(w.file, row) }

// total adds a histogram of the whole time.
func (w *work) total(of metric.Declaration, basis string, from, to op.Time, h *hist.Histogram) {
	w.res.Totals = append(w.res.Totals,
		metric.Histogram{Metric: of.Name, Unit: of.Unit, Basis: basis, From: from, To: to, Hist: h})
}

// interval adds the value of an interval that begins at an instant to a series of equal steps.
func (w *work) interval(of metric.Declaration, step, at, long op.Time, v float64) {
	w.res.Series = addInterval(w.res.Series, of.Series(int64(step)), at, long, v)
}

// addInterval adds the value of an interval to the series of a list that has the metric and the step of a given one. An
// interval that is later than those before is a series of its own whose step is its length: where within it the
// operations were is not known.
func addInterval(list []metric.Series, of metric.Series, at, long op.Time, v float64) []metric.Series {
	p := metric.Point{At: at, Value: v}
	if metric.Late(int64(long), of.Step) {
		of.Step, of.Points = int64(long), []metric.Point{p}
		return append(list, of)
	}
	i := slices.IndexFunc(list, func(s metric.Series) bool { return s.Metric == of.Metric && s.Step == of.Step })
	if i < 0 {
		i, list = len(list), append(list, of)
	}
	list[i].Points = append(list[i].Points, p)
	return list
}

// run reads the files of a tool and adds the results. If there are none, the error says what is missing.
func (w *work) run(tool, missing string, read func() (found bool, err error), results func()) (Result, error) {
	found, err := read()
	switch {
	case err != nil:
		return w.res, fmt.Errorf("%s: %w", tool, err)
	case !found:
		return w.res, fmt.Errorf("%s: %s", tool, missing)
	}
	results()
	return w.res, nil
}

// walk calls read with each of the files that has one of the extensions, such as ".txt", or one of the names.
func (w *work) walk(read func(name string) error, extensions ...string) error {
	return fs.WalkDir(w.in.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains(extensions, path.Ext(name)) && !slices.Contains(extensions, name) {
			return err
		}
		return read(name)
	})
}

// first calls each with the lines of the first file that has an extension; false: there is none.
func (w *work) first(extension string, each func(row string)) (found bool, err error) {
	err = w.walk(func(name string) error {
		if found {
			return nil
		}
		found = true
		return w.lines(name, each)
	}, extension)
	return found, err
}

// texts is walk with the whole text of each file of at most a number of bytes.
func (w *work) texts(most int64, read func(name, text string), extensions ...string) error {
	return w.walk(func(name string) error {
		text, ok, err := w.text(name, most)
		if ok {
			w.file = name
			read(name, string(text))
		}
		return err
	}, extensions...)
}

// text returns a file of at most a number of bytes; false, with a warning, if it is larger.
func (w *work) text(name string, most int64) (text []byte, ok bool, err error) {
	text, err = bounded.ReadFile(w.in.Files, name, most)
	if errors.Is(err, bounded.ErrTooLarge) {
		w.warn("outputUnread", "%v", err)
		return nil, false, nil
	}
	return text, err == nil, err
}

// clock places an instant of the container's wall clock on the run's clock; without that clock it counts from the
// start of the container's work, where the first instant that is asked for is.
func (in *Input) clock(unixNano int64) op.Time {
	if in.AtWall == nil {
		return in.Started
	}
	return in.AtWall(unixNano)
}

// aSecond is that of the run's clock.
const aSecond = op.Time(time.Second)

// maxRunSeconds is the greatest accepted time of a run. A clock that counts from 1970 may show twice of it.
const maxRunSeconds = 1 << 31

// began is the instant of a Unix time in seconds, the text of a file; if it is none, that of the container's start.
func (in *Input) began(text string) op.Time {
	unix, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(unix > 0 && unix <= 2*maxRunSeconds) {
		return in.Started
	}
	return in.clock(int64(unix * 1e9))
}

// unixNano is the Unix time in ns of digits before and after a decimal point.
func unixNano(seconds, fraction string) int64 {
	s, _ := strconv.ParseInt(seconds, 10, 64) // digits all
	ns, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	return s*int64(time.Second) + ns
}

// inSeconds is a time of a tool in seconds, at most maxRunSeconds.
func inSeconds(s float64) op.Time { return op.Time(min(s, maxRunSeconds) * float64(aSecond)) }
