package parser

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/imported"
	"github.com/cnsbench/cnsbench/internal/observation"
)

// report collects what one file of a tool says.
type report struct {
	imported.Report
	line int   // that is read, from 1
	err  error // why the text is refused
}

// done returns what was collected, or why the text is refused.
func (r *report) done() (*imported.Report, error) {
	if r.err != nil {
		return nil, r.err
	}
	return &r.Report, nil
}

// refuse refuses the text because of the line that is read. The first reason counts.
func (r *report) refuse(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("line %d: "+format, append([]any{r.line}, args...)...)
	}
}

// number parses a number of the line that is read; what names it.
func (r *report) number(what, text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		r.refuse("invalid %s %q: want a number", what, text)
	}
	return v
}

// figure adds a figure with the options that the tool ran with.
func (r *report) figure(name, unit string, v float64, options map[string]string, levels ...imported.Level) {
	r.Figures = append(r.Figures, imported.Figure{Metric: observation.Metric{Name: name, Unit: unit}, Value: v,
		Options: options, Levels: levels})
}

// flag adds a flag; each once.
func (r *report) flag(severity, name, format string, args ...any) {
	f := imported.Flag{Name: name, Severity: severity, Evidence: fmt.Sprintf(format, args...)}
	if !slices.Contains(r.Flags, f) {
		r.Flags = append(r.Flags, f)
	}
}

// missing flags figures that are usually there.
func (r *report) missing(format string, args ...any) {
	r.flag(imported.Warning, "figuresMissing", format, args...)
}

// maxUnread is how many lines that no pattern matches are quoted.
const maxUnread = 3

// readLines reads text, whose first line has a number, to t, which collects in r, by a table. Lines that no pattern
// matches are a flag with their number and text. So is a text that ends within a line: its last line may be cut off.
func readLines[T any](t T, r *report, text string, from int, table []linePattern[T]) {
	var unread []string
	n := 0
	r.line = from - 1
	for line := range strings.SplitSeq(text, "\n") {
		r.line++
		if line = strings.TrimSpace(line); line == "" || matched(t, table, line) {
			if r.err != nil {
				return
			}
			continue
		}
		if n++; n <= maxUnread {
			unread = append(unread, fmt.Sprintf("line %d: %s", r.line, bounded.Text(line, 100)))
		}
	}
	if n > maxUnread {
		unread = append(unread, fmt.Sprintf("and %d more", n-maxUnread))
	}
	if n > 0 {
		r.flag(imported.Warning, "linesUnread", "not understood and left out: %s", strings.Join(unread, "; "))
	}
	r.endOfText(text)
}

// endOfText flags a text whose last line has no end.
func (r *report) endOfText(text string) {
	if last := strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]); last != "" {
		r.flag(imported.Info, "lastLineOpen", "the text ends without a line break: its last line may be cut off: %s",
			bounded.Text(last, 100))
	}
}
