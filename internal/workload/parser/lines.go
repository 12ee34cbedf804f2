package parser

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/metric"
)

// linePattern is a kind of line of a tool's text, and what reads it to T. Lines without read are known and left out.
type linePattern[T any] struct {
	of   *regexp.Regexp
	read func(t T, m []string)
}

// re compiles a pattern of this package.
var re = regexp.MustCompile

// matched reads a line by the first pattern of a table that matches it; false: none does.
func matched[T any](t T, table []linePattern[T], row string) bool {
	for _, p := range table {
		if m := p.of.FindStringSubmatch(row); m != nil {
			if p.read != nil {
				p.read(t, m)
			}
			return true
		}
	}
	return false
}

// printedIn are what a printed 1 means, by the unit of the metric; 1 where there is none.
type printedIn map[string]float64

// ms are the ns of a millisecond.
const ms = 1e6

// inMs are the units of tools that print times in milliseconds, and data in MiB.
var inMs = printedIn{metric.Nanoseconds: ms, metric.BytesPerSecond: 1 << 20}

// value converts a printed value to that of a metric; times are whole ns.
func (p printedIn) value(of metric.Declaration, v float64) float64 {
	if unit, ok := p[of.Unit]; ok {
		v *= unit
	}
	if of.Unit == metric.Nanoseconds {
		v = math.Round(v)
	}
	return v
}

// figureLine is a kind of line with figures: the groups of its pattern are values of metrics, in the units that are
// printed. A line with an invalid number is unread.
func figureLine[T interface {
	figure(of metric.Declaration, v float64)
	leave(row string)
}](pattern string, units printedIn, metrics ...metric.Declaration) linePattern[T] {
	return linePattern[T]{re(pattern), func(t T, m []string) {
		for i, d := range metrics {
			if v, err := strconv.ParseFloat(m[i+1], 64); err != nil || v > maxNumber {
				t.leave(m[0])
			} else {
				t.figure(d, units.value(d, v))
			}
		}
	}}
}

// maxNumber is the greatest accepted number of a tool's text: greater ones are no longer exact.
const maxNumber = 1 << 53

// numberOf returns the number of a tool's text; 0 if it is none, or too great to be true.
func numberOf(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v > maxNumber {
		return 0
	}
	return v
}

// rows are the lines of a text without the spaces around them; a half-written one is left out.
func rows(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for row := range strings.Lines(text) {
			if strings.HasSuffix(row, "\n") && !yield(strings.TrimSpace(row)) {
				return
			}
		}
	}
}

// unreadLines counts lines of a tool's text that are neither read nor known to have no figures.
type unreadLines struct {
	n     int
	first string
}

// add counts a line of a file.
func (u *unreadLines) add(file, line string) {
	if u.n++; u.n == 1 {
		u.first = fmt.Sprintf("%s: %s", file, bounded.Text(line, 100))
	}
}

// warn adds a warning if there are any.
func (u *unreadLines) warn(r *Result) {
	if u.n > 0 {
		r.Warnings = append(r.Warnings, Warning{Code: "outputUnread",
			Message: fmt.Sprintf("%d lines are not understood, first %s", u.n, u.first)})
	}
}

// maxLine bounds a line of a tool's text. Those of a report are short, and a title is a command.
const maxLine = 1 << 20

// lines calls each with the lines of a file, of progress too; a half-written one is left out. What follows a line that
// is too long is not read, with a warning.
func (w *work) lines(name string, each func(row string)) error {
	file, err := w.in.Files.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	lines.Split(splitLine)
	for lines.Scan() {
		each(lines.Text())
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		w.warn("outputUnread", "%s has a line of more than %d bytes: what follows is not read", name, maxLine)
		return nil
	}
	return lines.Err()
}

// splitLine splits at the ends of lines and of progress; a half-written line is left out.
func splitLine(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexAny(data, "\r\n"); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}
