package parser

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/imported"
)

// goProcs is the suffix with GOMAXPROCS of a benchmark's name; there is none if it is 1.
var goProcs = re(`^(.*)-([0-9]+)$`)

// goLines are the lines of the output of benchmarks. Settings are lines such as pkg: or cpu:.
var goLines = []linePattern[*goBench]{
	{re(`^Benchmark.*$`), (*goBench).result},
	{re(`^(?:FAIL|--- FAIL|panic:|exit status).*$`), func(b *goBench, m []string) {
		b.flag(imported.Invalid, "benchmarksFailed", "line %d: %s", b.line, bounded.Text(m[0], 100))
	}},
	{re(`^(?:PASS$|ok\s+(\S+)|\?\s)`), func(b *goBench, m []string) { // the end of a package
		if b.ended = true; m[1] != "" && b.pkg != "" && m[1] != b.pkg {
			b.flag(imported.Warning, "linesMissing", "line %d ends package %s, but the last line pkg: names %s: results may "+
				"be of another package than they are given to", b.line, m[1], b.pkg)
		}
	}},
	{re(`^([a-z][^\s:A-Z]*):\s*(.*)$`), func(b *goBench, m []string) {
		if m[1] == "pkg" {
			b.pkg = m[2]
		}
	}},
	{re(`^.*$`), (*goBench).leave},
}

func isBenchmarks(text string) bool {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "Benchmark") {
			continue
		}
		if words := strings.Fields(line); len(words) >= 4 && len(words)%2 == 0 {
			if _, err := strconv.Atoi(words[1]); err == nil {
				return true
			}
		}
	}
	return false
}

// goResult is a line of a result.
type goResult struct {
	line      int
	name, pkg string
	procs     string // "": no suffix
	whole     string // with its suffix
	values    []string
}

// goBench is the work on the output of benchmarks.
type goBench struct {
	report
	results []*goResult
	pkg     string
	ended   bool // after the last result
	other   unreadLines
}

// readBenchmarks reads the result lines of Go benchmarks (https://go.dev/design/14313-benchmark-format): a name, the
// iterations, and pairs of value and unit. Parts of a name such as /size=4k are factors, as in benchstat. The package
// and GOMAXPROCS (-cpu) tell benchmarks of one name apart. Repeated lines are trials.
func readBenchmarks(text string) (*imported.Report, error) {
	b := &goBench{}
	readLines(b, &b.report, text, 1, goLines)
	if b.other.n > 0 {
		b.flag(imported.Info, "linesUnread", "%d lines are no results, and left out, first %s", b.other.n, b.other.first)
	}
	if !b.ended && len(b.results) > 0 {
		b.flag(imported.Info, "endMissing", "no line PASS or ok follows the last result: whether all are there is unknown")
	}
	for _, x := range b.results {
		b.benchmark(x)
	}
	return b.done()
}

// leave counts a line that is no result.
func (b *goBench) leave(m []string) { b.other.add(fmt.Sprintf("line %d", b.line), m[0]) }

// result reads a line that begins like a result. A name alone precedes the output of the benchmark.
func (b *goBench) result(m []string) {
	words := strings.Fields(m[0])
	if len(words) < 2 {
		return
	}
	if _, err := strconv.Atoi(words[1]); err != nil {
		b.leave(m)
		return
	}
	if len(words) < 4 || len(words)%2 != 0 {
		b.refuse("%s: want pairs of value and unit after the number of iterations: the line is cut off", words[0])
	}
	x := &goResult{line: b.line, pkg: b.pkg, whole: strings.TrimPrefix(words[0], "Benchmark"), values: words[2:]}
	x.name = x.whole
	switch m := goProcs.FindStringSubmatch(x.whole); {
	case m == nil:
	case m[2] == "1": // Go writes none; this program does after a name that ends in a number
		x.name, x.whole = m[1], m[1]
	default:
		x.name, x.procs = m[1], m[2]
	}
	b.results, b.ended = append(b.results, x), false
}

// benchmark adds the figures of a result.
func (b *goBench) benchmark(x *goResult) {
	name, options := x.name, map[string]string{"pkg": x.pkg}
	// A number at the end of a name is GOMAXPROCS if all names of the package have one (-cpu 2,4), or if the name is there
	// without it too (-cpu 1,2). Else it is the benchmark's own, as in /size-16.
	any := func(of func(o *goResult) bool) bool {
		return slices.ContainsFunc(b.results, func(o *goResult) bool { return o.pkg == x.pkg && of(o) })
	}
	bare := any(func(o *goResult) bool { return o.procs == "" })
	both := any(func(o *goResult) bool { return o.name == x.name && o.procs != "" }) &&
		any(func(o *goResult) bool { return o.whole == x.name })
	if bare && !both {
		name = x.whole
	} else {
		options["cpu"] = x.procs
	}
	name, levels := factorsOf(name)
	for i := 0; i+1 < len(x.values); i += 2 {
		v, err := strconv.ParseFloat(x.values[i], 64)
		if err != nil {
			b.line = x.line
			b.refuse("invalid value %q of Benchmark%s", x.values[i], x.whole)
		}
		b.figure(name+" "+x.values[i+1], x.values[i+1], v, options, levels...)
	}
}

// factorsOf takes the parts key=value out of a benchmark's name. A part with the name of a column of values, or with a
// key that was there before, stays.
func factorsOf(name string) (rest string, levels []imported.Level) {
	parts := strings.Split(name, "/")
	rest = parts[0]
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		known := func(l imported.Level) bool { return l.Factor == key }
		if key == "" || value == "" || slices.Contains(imported.ValueColumns, key) || slices.ContainsFunc(levels, known) {
			rest += "/" + part
		} else {
			levels = append(levels, imported.Level{Factor: key, Level: value})
		}
	}
	return rest, levels
}
