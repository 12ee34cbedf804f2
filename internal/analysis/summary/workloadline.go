package summary

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// workloadLines returns the lines of measured workloads; those of preparation and
// cleanup only where there are no others.
func workloadLines(s *Summary) []string {
	var lines, rest []string
	sought := s.FindMax != nil || s.Scaling != nil
	windows := map[string]int{}
	for _, w := range s.Workloads {
		if w.Step {
			continue
		}
		if m := stepName.FindStringSubmatch(w.Action); m != nil && !s.Complete && !sought {
			if windows[m[1]]++; windows[m[1]] == 1 {
				lines = append(lines, m[1]) // replaced below, once the number is known
			}
			continue
		}
		if measured := slices.DeleteFunc(slices.Clone(w.Metrics),
			func(m Metric) bool { return m.Unmeasured }); len(measured) > 0 {
			w.Metrics = measured
			if line := workloadLine(w, s.Live); line != "" {
				lines = append(lines, line)
			}
		} else if line := workloadLine(w, s.Live); line != "" {
			rest = append(rest, line)
		}
	}
	for i, l := range lines {
		if n := windows[l]; n > 0 {
			lines[i] = fmt.Sprintf("%s: %s of a search or a scaling, %s; the result is written at the end of the run.",
				l,
				plural(int64(n), "step"), CutOffNote(s.Live))
		}
	}
	if len(lines) == 0 && !sought {
		return rest
	}
	return lines
}

// stepName matches a step of --find-max or --scale-workers in a run that has not written
// its findings.
var stepName = regexp.MustCompile(`^(.+)\.(?:find[0-9]{2,}|w[0-9]+\.r[0-9]+)(?:\.|$)`)

func workloadLine(w Workload, live bool) string {
	var parts []string
	if len(w.Phases) == 0 {
		parts = principalParts(w.Values)
	}
	for _, m := range w.Metrics {
		if _, _, endpoint := metric.EndpointOf(m.Name); endpoint {
			continue // in the table of endpoints
		}
		if m.Part {
			continue // of an operation that is in the line
		}
		part := m.Name
		if rates := ratesOver(w.Phases, m.Name); rates != "" {
			parts = append(parts, part+" "+rates)
			continue
		}
		switch {
		case m.PerSecond != nil && m.BandwidthBytesSec != nil:
			part += fmt.Sprintf(" %s IOPS (%s)", units.Count(*m.PerSecond), units.Bandwidth(*m.BandwidthBytesSec))
		case m.PerSecond != nil:
			part += fmt.Sprintf(" %s IOPS", units.Count(*m.PerSecond))
		case m.BandwidthBytesSec != nil:
			part += " " + units.Bandwidth(*m.BandwidthBytesSec)
		default:
			continue
		}
		if q := m.Latency.P99; q.NeedsN == 0 && m.Latency.N > 0 {
			part += ", p99 " + m.Latency.P99.String()
		}
		if m.Errors > 0 {
			part += fmt.Sprintf(", %d of %d failed", m.Errors, m.OK+m.Errors+m.Lost)
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return ""
	}
	who := fmt.Sprintf("%s, %s", w.Action, plural(int64(len(w.Instances)), "instance"))
	if w.Invalid != "" {
		who += ", invalid"
	}
	if w.CutOff {
		who += ", " + CutOffNote(live)
	}
	return fmt.Sprintf("%s: %s.", who, strings.Join(parts, "; "))
}

// CutOffNote qualifies the figures of a workload without an end.
func CutOffNote(live bool) string {
	if live {
		return "so far"
	}
	return "cut off before its end"
}

// ratesOver returns a metric's rates by phase; empty without any.
func ratesOver(phases []Phase, metric string) string {
	var rates []string
	for _, p := range phases {
		rate := "–"
		for _, m := range p.Metrics {
			if m.Name == metric && m.PerSecond != nil {
				rate = units.Count(*m.PerSecond)
			}
		}
		rates = append(rates, rate)
	}
	if strings.Trim(strings.Join(rates, ""), "–") == "" {
		return ""
	}
	return strings.Join(rates, " → ") + " IOPS over its phases"
}

// DetailText says what samples at the level detailed have of the instances: the sum of their waits, the greatest of
// their pressures, why some of these were not observed, and the fullest volume. It is empty without any.
func (w Workload) DetailText() string {
	var waits, cpu, io, memory *float64
	fullest, name := 0.0, ""
	var noWaits, noPressure op.Unobserved
	for _, in := range w.Instances {
		x := in.Detail
		if x == nil {
			continue
		}
		noWaits, noPressure = cmp.Or(noWaits, x.IOWaitMissing), cmp.Or(noPressure, x.PressureMissing)
		combine(&waits, x.IOWaitThreads, func(a, b float64) float64 { return a + b })
		for _, p := range []struct{ to, from *(*float64) }{{&cpu, &x.CPUPressure}, {&io, &x.IOPressure},
			{&memory, &x.MemoryPressure}} {
			combine(p.to, *p.from, func(a, b float64) float64 { return max(a, b) })
		}
		for _, v := range x.Volumes {
			if share, ok := v.UsedShare(); ok && (name == "" || share > fullest) {
				fullest, name = share, v.Volume
			}
		}
	}
	var parts []string
	if waits != nil {
		parts = append(parts, fmt.Sprintf("%s threads waited for block I/O on average", units.Count(*waits)))
	}
	if noWaits != "" {
		parts = append(parts, "waits for block I/O not observed: "+noWaits.Words())
	}
	if cpu != nil && io != nil && memory != nil {
		parts = append(parts, fmt.Sprintf("pressure: CPU %.0f %%, I/O %.0f %%, memory %.0f %%", 100**cpu, 100**io,
			100**memory))
	}
	if noPressure != "" {
		parts = append(parts, "pressure not observed: "+noPressure.Words())
	}
	if name != "" {
		parts = append(parts, fmt.Sprintf("fullest volume: %s, %.0f %%", name, 100*fullest))
	}
	return strings.Join(parts, "; ")
}

// combine sets to to its combination with a value, if that is known.
func combine(to **float64, v *float64, f func(a, b float64) float64) {
	switch {
	case v == nil:
	case *to == nil:
		x := *v
		*to = &x
	default:
		**to = f(**to, *v)
	}
}
