package parser

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/imported"
)

var (
	// goProcs is the suffix with GOMAXPROCS of a benchmark's name; there is none if it is 1.
	goProcs = regexp.MustCompile(`^(.*)-([0-9]+)$`)
	// goEnd are the lines that end a package.
	goEnd  = regexp.MustCompile(`^(?:PASS$|ok\s+(\S+)|\?\s)`)
	goFail = regexp.MustCompile(`^(FAIL|--- FAIL|panic:|exit status)`)
	// goSetting is a line of configuration, such as pkg: or cpu: (https://go.dev/design/14313-benchmark-format).
	goSetting = regexp.MustCompile(`^([a-z][^\s:A-Z]*):\s*(.*)$`)
)

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
	line       int
	name, pkg  string
	procs      string // "": no suffix
	whole      string // with its suffix
	iterations int
	values     []string
}

// readBenchmarks reads the result lines of Go benchmarks (https://go.dev/design/14313-benchmark-format): a name, the
// iterations, and pairs of value and unit. Parts of a name such as /size=4k are factors, as in benchstat. The package
// and GOMAXPROCS (-cpu) tell benchmarks of one name apart. Repeated lines are trials.
func readBenchmarks(text string) (*imported.Report, error) {
	r := &report{}
	var results []goResult
	var other unreadLines
	pkg, ended, i := "", false, -1
	for line := range strings.SplitSeq(text, "\n") {
		i++
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		switch {
		case line == "":
		case strings.HasPrefix(line, "Benchmark"):
			x, err := goResultOf(words)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			if x == nil {
				if len(words) > 1 { // a name alone precedes the output of the benchmark
					other.add(fmt.Sprintf("line %d", i+1), line)
				}
				continue
			}
			x.line, x.pkg = i+1, pkg
			results = append(results, *x)
			ended = false
		case goFail.MatchString(line):
			r.flag(imported.Invalid, "benchmarksFailed", "line %d: %s", i+1, bounded.Text(line, 100))
		case goEnd.MatchString(line):
			ended = true
			if of := goEnd.FindStringSubmatch(line)[1]; of != "" && pkg != "" && of != pkg {
				r.flag(imported.Warning, "linesMissing",
					"line %d ends package %s, but the last line pkg: names %s: results may be of "+
						"another package than they are given to", i+1, of, pkg)
			}
		case goSetting.MatchString(line):
			if m := goSetting.FindStringSubmatch(line); m[1] == "pkg" {
				pkg = m[2]
			}
		default:
			other.add(fmt.Sprintf("line %d", i+1), line)
		}
	}
	if other.n > 0 {
		r.flag(imported.Info, "linesUnread", "%d lines are no results, and left out, first %s", other.n, other.first)
	}
	if !ended && len(results) > 0 {
		r.flag(imported.Info, "endMissing", "no line PASS or ok follows the last result: whether all are there is unknown")
	}
	for _, x := range results {
		if err := r.benchmark(&x, results); err != nil {
			return nil, fmt.Errorf("line %d: %w", x.line, err)
		}
	}
	r.endOfText(text)
	return &r.Report, nil
}

// goResultOf reads a line that begins like a result; nil if it is another text.
func goResultOf(words []string) (*goResult, error) {
	if len(words) < 2 {
		return nil, nil
	}
	n, notOne := strconv.Atoi(words[1])
	if notOne != nil {
		return nil, nil //nolint:nilerr // it is another text
	}
	if len(words) < 4 || len(words)%2 != 0 {
		return nil, fmt.Errorf("%s: want pairs of value and unit after the number of iterations: the line is cut off",
			words[0])
	}
	x := &goResult{whole: strings.TrimPrefix(words[0], "Benchmark"), iterations: n, values: words[2:]}
	x.name = x.whole
	switch m := goProcs.FindStringSubmatch(x.whole); {
	case m == nil:
	case m[2] == "1": // Go writes none; this program does after a name that ends in a number
		x.name, x.whole = m[1], m[1]
	default:
		x.name, x.procs = m[1], m[2]
	}
	return x, nil
}

// benchmark adds the figures of a result.
func (r *report) benchmark(x *goResult, all []goResult) error {
	name, options := x.name, map[string]string{"pkg": x.pkg}
	// A number at the end of a name is GOMAXPROCS if all names of the package have one (-cpu 2,4), or if the name is there
	// without it too (-cpu 1,2). Else it is the benchmark's own, as in /size-16.
	any := func(of func(o *goResult) bool) bool {
		return slices.ContainsFunc(all, func(o goResult) bool { return o.pkg == x.pkg && of(&o) })
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
	for i := 0; i < len(x.values); i += 2 {
		v, err := strconv.ParseFloat(x.values[i], 64)
		if err != nil {
			return fmt.Errorf("invalid value %q of Benchmark%s", x.values[i], x.whole)
		}
		r.figure(name+" "+x.values[i+1], x.values[i+1], v, options)
		r.Figures[len(r.Figures)-1].Levels = levels
	}
	return nil
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
