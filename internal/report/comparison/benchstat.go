package comparison

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cnsbench/cnsbench/internal/observation"
)

// procs is the suffix with GOMAXPROCS of a benchmark's name.
var procs = regexp.MustCompile(`-[0-9]+$`)

// WriteBenchstat writes every known value as a line of a Go benchmark: benchstat -col /provider then compares them.
// Names have no spaces there: they become underscores, and names that would then be equal get a number. better has
// "higher" or "lower" by unit.
func WriteBenchstat(w io.Writer, t *observation.Table, better map[string]string) error {
	out := bufio.NewWriter(w)
	for _, unit := range slices.Sorted(maps.Keys(better)) {
		fmt.Fprintf(out, "Unit %s better=%s\n", unit, better[unit])
	}
	keys := slices.SortedFunc(maps.Keys(t.Series), func(a, b observation.Key) int {
		return cmp.Or(cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Cell, b.Cell))
	})
	metrics, factors, levels := names{}, names{}, make([]names, len(t.Factors))
	for i := range levels {
		levels[i] = names{}
	}
	for _, k := range keys {
		name := "Benchmark" + metrics.of(t.Metrics[k.Metric].Name, capital)
		for i, level := range t.Cells[k.Cell] {
			name += "/" + factors.of(t.Factors[i], nil) + "=" + levels[i].of(level, nil)
		}
		if procs.MatchString(name) {
			name += "-1" // else benchstat takes the end of a level, such as gp-3, for GOMAXPROCS
		}
		for _, v := range t.Series[k] {
			if v.State == observation.Known {
				fmt.Fprintf(out, "%s 1 %s %s\n", name, strconv.FormatFloat(v.Value, 'g', -1, 64),
					BenchstatUnit(t.Metrics[k.Metric].Unit))
			}
		}
	}
	return out.Flush()
}

// BenchstatUnit is a unit as a Go benchmark has it.
func BenchstatUnit(unit string) string {
	if unit == "" {
		return "value"
	}
	return word(unit)
}

// names are parts of names of benchmarks, by what they stand for.
type names map[string]string

// of is the part for a text: another one for each text. change is applied to it; nil: nothing.
func (n names) of(text string, change func(string) string) string {
	if known, ok := n[text]; ok {
		return known
	}
	first := part(text)
	if change != nil {
		first = change(first)
	}
	used := func(name string) bool {
		return slices.Contains(slices.Collect(maps.Values(n)), name)
	}
	name := first
	for i := 2; used(name); i++ {
		name = first + "." + strconv.Itoa(i)
	}
	n[text] = name
	return name
}

// part is a part of a benchmark's name: parts are separated by slashes.
func part(s string) string { return strings.NewReplacer("/", "_", "=", "_").Replace(word(s)) }

// word replaces spaces, which separate the words of a line.
func word(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, s)
}

// capital makes the first letter upper case, which the name of a benchmark needs.
func capital(s string) string {
	if s == "" {
		return s
	}
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}
