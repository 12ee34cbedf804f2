package interference

import (
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// maker has what one group is made from: canaries of one direction, or time slices.
type maker struct {
	action, metric string
	canaries       []*dataset.Canary
	write          bool
	slices         []*bundle.HistogramSlice
}

// group is one metric of the instances of an action over time, from when each is measured.
type group struct {
	action, metric string
	streams        []stream
	steps          []step // in order of time, those of one instant in order of their streams
	values         stats.Ranked
}

// stream is the I/O of one instance, or of its canary on one volume.
type stream struct{ instance, volume string }

// step is a time interval. Its values are those from begin to the begin of the next step.
type step struct {
	from, to      op.Time
	stream, begin int32
}

// groups returns what there is I/O over time of.
func groups(d *dataset.Data) []*maker {
	var list []*maker
	at := func(action, name string) *maker {
		i := slices.IndexFunc(list, func(m *maker) bool { return m.action == action && m.metric == name })
		if i < 0 {
			i = len(list)
			list = append(list, &maker{action: action, metric: name})
		}
		return list[i]
	}
	for i := range d.Canaries {
		for _, write := range []bool{false, true} {
			m := at(d.Canaries[i].Action, metric.Canary(write))
			m.canaries, m.write = append(m.canaries, &d.Canaries[i]), write
		}
	}
	for i := range d.Slices {
		if h := &d.Slices[i]; h.From >= d.MeasuredFrom(h.Instance) {
			m := at(h.Action, h.Metric)
			m.slices = append(m.slices, h)
		}
	}
	return list
}

// group makes the group.
func (m *maker) group() *group {
	g := &group{action: m.action, metric: m.metric}
	type source struct{ stream, i int32 } // the i-th I/O or slice; the streams of canaries are first
	var sources []source
	add := func(instance, volume string, steps int, wanted func(i int) bool) {
		for i := range steps {
			if wanted(i) {
				sources = append(sources, source{int32(len(g.streams)), int32(i)})
			}
		}
		g.streams = append(g.streams, stream{instance, volume})
	}
	n := 0
	for _, c := range m.canaries {
		n += len(c.IOs)
	}
	sources = make([]source, 0, n/2+len(m.slices)) // about half are of a direction
	for _, c := range m.canaries {
		behind := dataset.Cursor{Of: c.Behind(m.write)}
		add(c.Instance, c.Volume, len(c.IOs), func(i int) bool {
			io := &c.IOs[i]
			return io.Write == m.write && io.Errno == 0 && io.Ended.Known() && !behind.Overlaps(io.Intended, io.Intended)
		})
	}
	histograms := byInstance(m.slices)
	for _, of := range histograms {
		add(of[0].Instance, "", len(of), func(int) bool { return true })
	}
	from := func(i int) int64 {
		s := sources[i]
		if k := int(s.stream) - len(m.canaries); k >= 0 {
			return int64(histograms[k][s.i].From)
		}
		return int64(m.canaries[s.stream].IOs[s.i].Intended)
	}
	g.steps = make([]step, 0, len(sources))
	values := make(stats.Counts, 0, len(sources))
	for _, at := range stats.Order(len(sources), from) {
		s := sources[at]
		x := step{stream: s.stream, begin: int32(len(values))}
		if k := int(s.stream) - len(m.canaries); k >= 0 {
			h := histograms[k][s.i]
			x.from, x.to = h.From, h.To
			values = append(values, stats.OfHistogram(h.Hist)...)
		} else {
			io := &m.canaries[s.stream].IOs[s.i]
			x.from, x.to = io.Intended, io.Ended
			values = append(values, stats.Count{Value: int64(io.Ended - io.Intended), N: 1})
		}
		g.steps = append(g.steps, x)
	}
	g.values = stats.Rank(values)
	return g
}

// end is the end of the values of a step.
func (g *group) end(i int) int {
	if i+1 < len(g.steps) {
		return int(g.steps[i+1].begin)
	}
	return len(g.values.Ranks)
}

// byInstance groups slices, in order of the first of each instance.
func byInstance(all []*bundle.HistogramSlice) (list [][]*bundle.HistogramSlice) {
	index := map[string]int{}
	for _, h := range all {
		i, known := index[h.Instance]
		if !known {
			i = len(list)
			index[h.Instance] = i
			list = append(list, nil)
		}
		list[i] = append(list[i], h)
	}
	return list
}

// divide returns the steps by their place relative to the ops of an action. Streams of one time share its conditions:
// as many successive steps as there are streams are one step (see stats.InTime).
func (g *group) divide(ops *dataset.Busy, control string) (sides [3]*stats.Steps) {
	all := dataset.Cursor{Of: ops.All(control)}
	mine := make([]dataset.Cursor, len(g.streams))
	for i, s := range g.streams {
		mine[i].Of = ops.Own(control, s.instance, s.volume)
	}
	places := make([]place, len(g.steps))
	var streams, values [3]int
	seen := make([][3]bool, len(g.streams))
	for i := range g.steps {
		s := &g.steps[i]
		p := outside
		switch ownOps, anyOps := mine[s.stream].Overlaps(s.from, s.to), all.Overlaps(s.from, s.to); {
		case ownOps:
			p = own
		case anyOps:
			p = bystander
		}
		if !seen[s.stream][p] {
			seen[s.stream][p] = true
			streams[p]++
		}
		places[i] = p
		values[p] += g.end(i) - int(s.begin)
	}
	var n [3]int
	for p := range sides {
		sides[p] = stats.NewSteps(&g.values, values[p])
	}
	for i, p := range places {
		if n[p]%streams[p] == 0 {
			sides[p].Begin()
		}
		n[p]++
		sides[p].Add(&g.values, int(g.steps[i].begin), g.end(i))
	}
	return sides
}
