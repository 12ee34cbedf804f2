package imported

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/lazy"
)

// procs is the suffix with GOMAXPROCS of a benchmark's name.
var procs = lazy.Regexp(`-[0-9]+$`)

// maxFactors is the most factors that names of benchmarks may have.
const maxFactors = 20

// parseBenchmarks reads the result lines of Go benchmarks (https://go.dev/design/14313-benchmark-format): a name, the
// iterations, and pairs of value and unit. Parts of a name such as /size=4k are factors, as in benchstat. Other lines
// are skipped. Repeated lines are trials.
func parseBenchmarks(text string) ([]Figure, error) {
	var list []Figure
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) < 4 || len(words)%2 != 0 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		if _, err := strconv.Atoi(words[1]); err != nil {
			continue // text that begins like a result
		}
		name, levels := factorsOf(procs().ReplaceAllString(strings.TrimPrefix(words[0], "Benchmark"), ""))
		for j := 2; j < len(words); j += 2 {
			x, err := strconv.ParseFloat(words[j], 64)
			if err != nil {
				return nil, fmt.Errorf("line %d: invalid value %q of %s", i+1, words[j], words[0])
			}
			f := figureOf(name+" "+words[j+1], words[j+1], x)
			f.Levels = levels
			list = append(list, f)
		}
	}
	return list, nil
}

// factorsOf takes the parts key=value out of a benchmark's name. A part with the name of a column of values, or with a
// key that was there before, stays.
func factorsOf(name string) (rest string, levels []Level) {
	parts := strings.Split(name, "/")
	rest = parts[0]
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		known := func(l Level) bool { return l.Factor == key }
		if key == "" || value == "" || slices.Contains(valueColumns, key) || slices.ContainsFunc(levels, known) {
			rest += "/" + part
		} else {
			levels = append(levels, Level{key, value})
		}
	}
	return rest, levels
}
