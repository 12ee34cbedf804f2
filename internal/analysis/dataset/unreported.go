package dataset

import (
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Unreported returns the times in which the containers of an instance ran and of which its tool has left no slice: from
// their start to that of the containers that replaced them, or to the end of the instance. A tool that writes at its end
// leaves nothing when it is killed, so that it is not known whether it did any operation. curves are those of the
// instance. Where only some of its containers were replaced, nothing is known of the others.
func (d *Data) Unreported(instance string, curves ...*Curve) (times Union) {
	for _, life := range d.replaced(instance) {
		reported := slices.ContainsFunc(curves, func(c *Curve) bool {
			in := func(p metric.Point) bool { return c.End(p) > life.From && p.At < life.To }
			return slices.ContainsFunc(c.Points, in)
		})
		if !reported && life.To > life.From {
			times = append(times, life)
		}
	}
	return times
}

// replaced returns the lives of the containers of an instance that were all replaced together, at least once.
func (d *Data) replaced(instance string) (lives []Span) {
	starts := map[string][]op.Time{} // of each container
	for i := range d.Instances {
		if x := &d.Instances[i]; x.Name == instance {
			for _, s := range x.Starts {
				name, _, _ := strings.Cut(s.Container, "~")
				starts[name] = append(starts[name], s.At)
			}
		}
	}
	all := slices.Collect(maps.Values(starts))
	if len(all) == 0 || len(all[0]) < 2 {
		return nil
	}
	for _, of := range all {
		if len(of) != len(all[0]) {
			return nil
		}
		slices.Sort(of)
	}
	for i := range all[0] {
		life := Span{all[0][i], d.endOf(instance)}
		for _, of := range all {
			life.From = max(life.From, of[i])
			if i+1 < len(of) {
				life.To = min(life.To, of[i+1])
			}
		}
		lives = append(lives, life)
	}
	return lives
}
