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
	steps          []step  // stream by stream
	order          []int32 // of the steps by time, those of one instant in order of their streams
	values         stats.Ranked
}

// stream is the I/O of one instance, or of its canary on one volume.
type stream struct{ instance, volume string }

// step is a time interval with the values [begin, end) that were measured in it.
type step struct {
	from, to           op.Time
	stream, begin, end int32
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
	wanted := func(io *op.CanaryIO) bool { return io.Write == m.write && io.Errno == 0 && io.Ended.Known() }
	n := len(m.slices)
	for _, c := range m.canaries {
		for i := range c.IOs {
			if wanted(&c.IOs[i]) {
				n++
			}
		}
	}
	g.steps = make([]step, 0, n)
	values := make(stats.Counts, 0, n)
	add := func(from, to op.Time, begin int) { // of the values from begin on
		g.steps = append(g.steps, step{from, to, int32(len(g.streams)), int32(begin), int32(len(values))})
	}
	end := func(instance, volume string) {
		if n := len(g.steps); n > 0 && int(g.steps[n-1].stream) == len(g.streams) {
			g.streams = append(g.streams, stream{instance, volume})
		}
	}
	for _, c := range m.canaries {
		for i := range c.IOs {
			if io := &c.IOs[i]; wanted(io) {
				values = append(values, stats.Count{Value: int64(io.Ended - io.Intended), N: 1})
				add(io.Intended, io.Ended, len(values)-1)
			}
		}
		end(c.Instance, c.Volume)
	}
	for _, of := range byInstance(m.slices) {
		for _, h := range of {
			begin := len(values)
			values = append(values, stats.OfHistogram(h.Hist)...)
			add(h.From, h.To, begin)
		}
		end(of[0].Instance, "")
	}
	g.order = stats.Order(len(g.steps), func(i int) int64 { return int64(g.steps[i].from) })
	g.values = stats.Rank(values)
	return g
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
	for _, i := range g.order {
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
		values[p] += int(s.end - s.begin)
	}
	var n [3]int
	for p := range sides {
		sides[p] = stats.NewSteps(g.values.Table, values[p])
	}
	for _, i := range g.order {
		p, s := places[i], &g.steps[i]
		if n[p]%streams[p] == 0 {
			sides[p].Begin()
		}
		n[p]++
		sides[p].Add(&g.values, int(s.begin), int(s.end))
	}
	return sides
}
