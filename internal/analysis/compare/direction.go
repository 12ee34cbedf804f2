package compare

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// Units of which more is better, and less.
var (
	perTime   = regexp.MustCompile(`(?i)^(k?iops|tps|qps|rps|ops|[kmgt]?i?b(it)?ps)$|/\s?(s|sec|second|min|minute|h)$`)
	timeUnits = map[string]bool{"ns": true, "us": true, "µs": true, "μs": true, "usec": true, "µsec": true, "ms": true,
		"msec": true, "s": true, "sec": true, "seconds": true, "min": true, "minutes": true, "ns/op": true, "sec/op": true,
		"s/op": true, "B/op": true, "allocs/op": true}
)

// Words in names of metrics.
var (
	moreWords = regexp.MustCompile(`(?i)\b(iops|throughput|bandwidth|rate|tps|qps|goodput|ops|bw)\b`)
	lessWords = regexp.MustCompile(`(?i)\b(latency|latencies|duration|time|lat|clat|slat|errors?|failures?|` +
		`stalls?|interference)\b`)
	failures = regexp.MustCompile(`(?i)\b(errors?|failures?|stalls?|timeouts?|retries)\b`)
)

// directionOf tells which values of a metric are better: by its unit, else by words of its name.
func directionOf(m observation.Metric) verdict.Direction {
	switch {
	case timeUnits[m.Unit]:
		return verdict.LessIsBetter
	case strings.Contains(m.Unit, "/") && dimensionOf(m) != bandwidth && failures.MatchString(m.Name+" "+m.Unit):
		return verdict.LessIsBetter // errors per second, not I/O per second
	case perTime.MatchString(m.Unit):
		return verdict.MoreIsBetter
	}
	more, less := moreWords.MatchString(m.Name), lessWords.MatchString(m.Name)
	switch {
	case more && !less:
		return verdict.MoreIsBetter
	case less && !more:
		return verdict.LessIsBetter
	}
	return verdict.Unknown
}

// directions are the words of --direction.
var directions = map[string]verdict.Direction{"higher": verdict.MoreIsBetter, "lower": verdict.LessIsBetter}

func directionWord(d verdict.Direction) string {
	for word, it := range directions {
		if it == d {
			return word
		}
	}
	return "unknown"
}

// ParseDirections reads "higher", "lower", or METRIC=higher. The key "" is for all metrics.
func ParseDirections(texts []string) (map[string]verdict.Direction, error) {
	all := map[string]verdict.Direction{}
	for _, text := range texts {
		metric, word := "", text
		if at := strings.LastIndexByte(text, '='); at >= 0 {
			metric, word = text[:at], text[at+1:]
		}
		d, ok := directions[word]
		if !ok {
			return nil, fmt.Errorf("invalid --direction %q: want higher or lower, or METRIC=higher", text)
		}
		all[metric] = d
	}
	return all, nil
}

// DirectionOf is the word for which values of a metric are better: higher, lower, or unknown.
func DirectionOf(m observation.Metric, given map[string]verdict.Direction) string {
	return directionWord(chosen(m, given))
}

// chosen is the given direction of a metric, else the declared one, else that which follows from its unit and name.
func chosen(m observation.Metric, given map[string]verdict.Direction) verdict.Direction {
	for _, name := range []string{m.Name, ""} {
		if d, ok := given[name]; ok {
			return d
		}
	}
	if d, ok := directions[m.Better]; ok {
		return d
	}
	return directionOf(m)
}
