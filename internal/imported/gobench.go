package imported

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// procs is the suffix with GOMAXPROCS of a benchmark's name.
var procs = regexp.MustCompile(`-[0-9]+$`)

// parseBenchmarks reads the result lines of Go benchmarks (https://go.dev/design/14313-benchmark-format): a name, the
// iterations, and pairs of value and unit. Other lines are skipped. Repeated lines are trials.
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
		name := procs.ReplaceAllString(strings.TrimPrefix(words[0], "Benchmark"), "")
		for j := 2; j < len(words); j += 2 {
			x, err := strconv.ParseFloat(words[j], 64)
			if err != nil {
				return nil, fmt.Errorf("line %d: invalid value %q of %s", i+1, words[j], words[0])
			}
			list = append(list, figureOf(name+" "+words[j+1], words[j+1], x))
		}
	}
	return list, nil
}
