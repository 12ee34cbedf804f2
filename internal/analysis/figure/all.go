package figure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	// FoldPanels is the number of instances from which Timeline.All shows them together.
	FoldPanels = 7
	allBins    = 240
)

// together returns a panel of all instances: the sum of their bandwidths and the greatest of their latencies, in bins.
func together(panels []Panel) *Panel {
	var bandwidth, latency []Line
	for _, p := range panels {
		bandwidth = append(bandwidth, p.Bandwidth...)
		for _, l := range p.Latency {
			l.Name = anyVolume(l.Name)
			latency = append(latency, l)
		}
	}
	from, to := extentOf(slices.Concat(bandwidth, latency))
	if to <= from {
		return nil
	}
	bin := max((to-from)/allBins, 1e9)
	sum := func(at *float64, share, value float64) { *at += share * value }
	greatest := func(at *float64, _, value float64) { *at = max(*at, value) }
	return &Panel{Instance: fmt.Sprintf("all %d instances", len(panels)), Bandwidth: merged(bandwidth, from, bin, sum),
		Latency: merged(latency, from, bin, greatest)}
}

// anyVolume is the name of a line without its volume.
func anyVolume(name string) string {
	if canary, _, found := strings.Cut(name, " max "); found {
		return canary + " max"
	}
	return name
}

func extentOf(lines []Line) (from, to op.Time) {
	for i, l := range lines {
		for j, p := range l.Points {
			if i+j == 0 {
				from, to = p.From, p.To
			}
			from, to = min(from, p.From), max(to, p.To)
		}
	}
	return from, to
}

// merged merges lines of one name. merge is called for each point and each bin that it touches, with the share of the
// bin that it covers.
func merged(lines []Line, from, bin op.Time, merge func(at *float64, share, value float64)) []Line {
	type cell struct {
		value float64
		known bool
	}
	cells, names := map[string][]cell{}, []string{}
	for _, l := range lines {
		if !slices.Contains(names, l.Name) {
			names = append(names, l.Name)
		}
		of := cells[l.Name]
		for _, p := range l.Points {
			for i := (p.From - from) / bin; from+i*bin < p.To; i++ {
				for op.Time(len(of)) <= i {
					of = append(of, cell{})
				}
				c := &of[i]
				covered := min(p.To, from+(i+1)*bin) - max(p.From, from+i*bin)
				merge(&c.value, float64(covered)/float64(bin), p.Value)
				c.known = true
			}
		}
		cells[l.Name] = of
	}
	var out []Line
	for _, name := range names {
		l := Line{Name: name}
		for i, c := range cells[name] {
			if c.known {
				at := from + op.Time(i)*bin
				l.Points = append(l.Points, Point{at, at + bin, c.value})
			}
		}
		out = append(out, l)
	}
	return out
}
