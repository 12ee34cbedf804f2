package entrycheck

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// unread are the flags of outputs that a parser could not read.
var unread = []string{"outputUnread", "outputUnparsed", "parserFailed"}

// Matches reports whether a file of a bundle is an output that the entry names.
func Matches(o plan.Output, file bundle.RawFile) bool {
	ok, err := path.Match(o.File, "/"+file.File)
	own := file.Container == o.Container || strings.HasSuffix(file.Container, "."+o.Container)
	return ok && err == nil && own
}

// output checks that each output was written.
func output(f *Facts) Check {
	switch why := f.notReady(); {
	case why != "":
		return skip("%s", why)
	case len(f.Outputs) == 0:
		return skip("the entry names no outputFile: only counters of its processes are measured")
	}
	var found, missing []string
	for _, o := range f.Outputs {
		var n int
		var bytes int64
		for _, file := range f.Full.Raw {
			if Matches(o, file) {
				n++
				bytes += file.Bytes
			}
		}
		switch {
		case n == 0:
			missing = append(missing, o.File+" was not written")
		case bytes == 0:
			missing = append(missing, o.File+" is empty")
		default:
			found = append(found, fmt.Sprintf("%s: %s, %s", o.File, count(n, "file"), size(bytes)))
		}
	}
	if len(missing) > 0 && f.failed() {
		return skip("%s: the workload failed", strings.Join(missing, "; "))
	}
	if len(missing) > 0 {
		return fail(fmt.Sprintf("let container %s write it there, or correct the annotation outputFile",
			f.Outputs[0].Container), "%s", strings.Join(missing, "; "))
	}
	return pass("%s", strings.Join(found, "; "))
}

// parsers are the names of the parsers of the outputs.
func (f *Facts) parsers() []string {
	var names []string
	for _, o := range f.Outputs {
		if o.Parser != "" && !slices.Contains(names, o.Parser) {
			names = append(names, o.Parser)
		}
	}
	return names
}

// noParser says why no output was parsed; empty: it was.
func (f *Facts) noParser() string {
	why := f.notReady()
	switch {
	case why != "":
		return why
	case len(f.Outputs) == 0:
		return "there is no output"
	case len(f.parsers()) == 0:
		return "the entry names no parser: its output is kept as it is, and no metric is read"
	case !slices.ContainsFunc(f.Full.Raw, f.isOutput):
		return "there is no output"
	}
	return ""
}

// isOutput reports whether a file is an output that the entry names.
func (f *Facts) isOutput(file bundle.RawFile) bool {
	return slices.ContainsFunc(f.Outputs, func(o plan.Output) bool { return Matches(o, file) })
}

// unreadable describes why the parser cannot read the output; empty: it can.
func (f *Facts) unreadable() (wrong []string) {
	for _, flag := range f.Full.Run.Validity {
		if slices.Contains(unread, flag.Name) {
			wrong = append(wrong, flag.Name+": "+flag.Evidence)
		}
	}
	return wrong
}

// parserKnows checks that the parser reads the output.
func parserKnows(f *Facts) Check {
	if why := f.noParser(); why != "" {
		return skip("%s", why)
	}
	names := strings.Join(f.parsers(), ", ")
	if wrong := f.unreadable(); len(wrong) > 0 {
		return fail("see docs/format/parser.md, and run the parser on the file in raw/ (--out keeps it)", "parser %s: %s",
			names, strings.Join(wrong, "\n"))
	}
	var others []string
	for _, flag := range f.Full.Run.Validity {
		if len(flag.Sources) > 0 {
			others = append(others, flag.Name)
		}
	}
	if len(others) > 0 {
		return pass("%s reads it; flags: %s (docs/reference/flags.md)", names, strings.Join(others, ", "))
	}
	return pass("%s reads it", names)
}

// metrics checks that there are metrics, and names those that lack something.
func metrics(f *Facts) Check {
	if why := f.noParser(); why != "" {
		return skip("%s", why)
	}
	found := f.metrics()
	if len(found) == 0 && len(f.unreadable()) > 0 {
		return skip("the parser does not read the output")
	}
	if len(found) == 0 {
		return fail("let the parser print a metric (docs/format/parser.md)", "parser %s found none",
			strings.Join(f.parsers(), ", "))
	}
	names := map[string]bool{}
	var vague []string
	for _, m := range found {
		names[m.Name] = true
		if f.scripted() && (m.Unit == "" || m.Better == "" && m.Kind != string(metric.Quantity)) {
			vague = append(vague, m.Name)
		}
	}
	text := count(len(found), "metric")
	if len(vague) > 0 {
		text += "; without a unit or a direction (better), so that compare cannot judge them: " + strings.Join(vague, ", ")
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(f.declared())) {
		if !names[name] {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		text += "; declared by the parser and not in this output: " + strings.Join(missing, ", ")
	}
	return pass("%s", text)
}

// scripted reports whether a parser is a script of the entry.
func (f *Facts) scripted() bool {
	return slices.ContainsFunc(f.Outputs, func(o plan.Output) bool { return o.Script != "" })
}

// span is a part of the run's time, and the longest step of the values in it.
type span struct {
	from, to op.Time
	step     time.Duration
	points   int
}

func (s *span) add(from, to op.Time) {
	if s.points == 0 {
		s.from, s.to = from, to
	}
	s.from, s.to = min(s.from, from), max(s.to, to)
	s.step = max(s.step, time.Duration(to-from))
	s.points++
}

// values are the time in which a run has values of metrics.
func (r *Run) values() span {
	var s span
	for _, one := range r.Series {
		for i, p := range one.Points {
			s.add(p.At, p.At+op.Time(one.Step))
			if i > 0 {
				s.step = max(s.step, time.Duration(p.At-one.Points[i-1].At))
			}
		}
	}
	for _, h := range r.Histograms {
		if !h.Total {
			s.add(h.From, h.To)
		}
	}
	return s
}

// series checks that there are values over time, between the barrier and the end, and of at least half of that time:
// the start of a program takes seconds on a busy machine.
func series(f *Facts) Check {
	switch why := f.noParser(); {
	case why != "":
		return skip("%s", why)
	case len(f.metrics()) == 0:
		return skip("no metric was read")
	case f.Full.lasted() <= 0:
		return skip("the end of the workload is not known")
	}
	s, opened := f.Full.values(), f.Full.Run.BarrierAt
	if s.points == 0 {
		return skip("no metric has values over time, so that curves and windows of objectives lack it; " +
			"a script prints them with time or elapsed")
	}
	end := f.Full.Instance.End.At
	slack := op.Time(max(min(2*s.step, f.Full.lasted()), f.Full.lasted()/4, time.Second))
	from, to := rounded(time.Duration(s.from-opened)), rounded(time.Duration(s.to-opened))
	const do = "check the unit and the clock of the times: seconds since 1970 (time), or since the container " +
		"began (elapsed)"
	switch {
	case s.to < opened-slack || s.from > end+slack:
		return fail(do, "values are of %v to %v after the barrier opened, and the workload ran from 0 to %v", from, to,
			rounded(f.Full.lasted()))
	case s.from < opened-slack || s.to > end+slack:
		return fail(do, "values go beyond the measured time: from %v to %v after the barrier opened, of %v", from, to,
			rounded(f.Full.lasted()))
	case s.to-s.from < op.Time(f.Full.lasted()/2-2*s.step):
		return fail("print values for all of the measured time; time before and after the work can be done in init "+
			"containers", "values cover %v to %v after the barrier opened, of %v", from, to, rounded(f.Full.lasted()))
	}
	return pass("%s from %v to %v after the barrier opened, of %v", count(s.points, "value"), from, to,
		rounded(f.Full.lasted()))
}

// half checks that the parser notices the lack of the second half of the output.
func half(f *Facts) Check {
	return damaged(f, f.Half, "the first half of the output",
		"end the output with a line that the parser looks for, and print {\"warning\": …} or fail without it")
}

// empty checks that the parser reports an empty output.
func empty(f *Facts) Check {
	return damaged(f, f.Empty, "an empty output", "print no metric, or fail")
}

// damaged judges the parser on a damaged output.
func damaged(f *Facts, r *Run, what, do string) Check {
	if why := f.noParser(); why != "" {
		return skip("%s", why)
	}
	if r == nil {
		return skip("there is no output to damage")
	}
	if r.Err != nil {
		return fail("correct the parser", "on %s: %v", what, r.Err)
	}
	for _, flag := range r.Run.Validity {
		if (flag.Name == "parserFailed" || flag.Name == "outputUnread") && crashed.MatchString(flag.Evidence) {
			return fail("report what is wrong with the output and exit with a code other than 0", "on %s the parser crashes: %s",
				what, lastLine(flag.Evidence))
		}
	}
	for _, flag := range r.Run.Validity {
		if slices.ContainsFunc(f.Full.Run.Validity, func(o bundle.Flag) bool { return o.Name == flag.Name }) {
			continue // the whole output has it, too
		}
		_, text, _ := strings.Cut(flag.Evidence, ": ")
		return pass("%s: %s", flag.Name, firstLine(text))
	}
	if len(r.metrics()) == 0 {
		return pass("no metric")
	}
	return fail(do, "on %s the parser gives %s and no warning", what, count(len(r.metrics()), "metric"))
}

// crashed matches the messages of a script that ended by a signal or by an exception that nothing caught, and of a
// built-in parser that panicked.
var crashed = regexp.MustCompile(`the parser panicked|killed|SIG[A-Z]+|Traceback \(most recent call last\)|^panic: `)

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

func firstLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return text
}
