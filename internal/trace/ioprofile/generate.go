package ioprofile

import (
	"math/rand/v2"

	"github.com/cnsbench/cnsbench/internal/trace/iotrace"
)

// Limits of what is generated.
type Limits struct {
	// Length is the longest time in nanoseconds and IOs the largest number of operations; 0: that of the trace.
	LengthNs int64
	IOs      int
	// Size is the number of bytes in which offsets lie; 0: that of the trace.
	Size int64
	Seed uint64
}

// Generate returns operations of the model. Equal models and limits give equal operations.
//
// Everything is drawn without replacement from decks that are refilled when they are empty, so that a trace as long as
// the recorded one has its proportions but for what the order leaves over.
func (m *Model) Generate(o Limits) []iotrace.IO {
	g := generator{m: m, size: m.Span, random: rand.New(rand.NewPCG(o.Seed, 1)), ends: map[iotrace.Op]int64{}}
	if o.Size > 0 && o.Size < m.Span {
		g.size = max(o.Size/m.Align*m.Align, m.Align)
	}
	g.fill()
	most := o.IOs
	if most == 0 && o.LengthNs == 0 {
		most = m.IOs
	}
	var ios []iotrace.IO
	state, at := 0, int64(0)
	for most == 0 || len(ios) < most {
		if len(ios) > 0 {
			state = g.next[state].draw(g.random)
			bin := m.States[state].Bin
			at += m.GapsNs[bin][g.gaps[bin].draw(g.random)]
		}
		if o.LengthNs > 0 && at > o.LengthNs || len(ios) == maxGenerated {
			break
		}
		x := g.io(m.States[state].Class)
		x.At = at
		ios = append(ios, x)
	}
	return ios
}

// maxGenerated bounds the memory of Generate.
const maxGenerated = 20_000_000

type generator struct {
	m      *Model
	size   int64
	random *rand.Rand
	ends   map[iotrace.Op]int64
	// One for each state, bin and class.
	next, gaps, sizes, zones []*deck
}

func (g *generator) fill() {
	for _, s := range g.m.States {
		var d deck
		for _, n := range s.Next {
			d.put(n.State, n.N)
		}
		if len(s.Next) == 0 {
			d.put(0, 1) // the trace ended here
		}
		g.next = append(g.next, &d)
	}
	for _, bin := range g.m.GapsNs {
		g.gaps = append(g.gaps, even(len(bin)))
	}
	for _, c := range g.m.Classes {
		var d deck
		for i, s := range c.Sizes {
			d.put(i, s.N)
		}
		g.sizes, g.zones = append(g.sizes, &d), append(g.zones, even(len(c.Zones)))
	}
}

// io makes one operation of a class.
func (g *generator) io(class int) iotrace.IO {
	c := g.m.Classes[class]
	x := iotrace.IO{Op: c.Op, Latency: iotrace.Unknown}
	if !c.Op.Transfers() {
		return x
	}
	x.Size = min(c.Sizes[g.sizes[class].draw(g.random)].Bytes, g.size)
	if c.Continues {
		x.Offset = g.ends[c.Op]
		if x.Offset+x.Size > g.size {
			x.Offset = 0
		}
	} else {
		z := c.Zones[g.zones[class].draw(g.random)]
		steps := (z.To - z.From) / g.m.Align
		x.Offset = g.scale(z.From+g.random.Int64N(steps+1)*g.m.Align, x.Size)
	}
	g.ends[c.Op] = x.Offset + x.Size
	return x
}

// scale moves an offset of the recorded range into the range that is used.
func (g *generator) scale(offset, size int64) int64 {
	if g.size < g.m.Span {
		offset = int64(float64(offset) / float64(g.m.Span) * float64(g.size))
	}
	return max(0, min(offset, g.size-size)) / g.m.Align * g.m.Align
}

// deck draws numbers without replacement, and is refilled when it is empty.
type deck struct {
	values      []int
	counts      []int64
	left        []int64
	total, size int64
}

func even(n int) *deck {
	var d deck
	for i := range n {
		d.put(i, 1)
	}
	return &d
}

func (d *deck) put(value int, n int64) {
	d.values, d.counts, d.size = append(d.values, value), append(d.counts, n), d.size+n
}

func (d *deck) draw(random *rand.Rand) int {
	if d.total == 0 {
		d.left, d.total = append(d.left[:0], d.counts...), d.size
	}
	at := random.Int64N(d.total)
	for i, n := range d.left {
		if at -= n; at < 0 {
			d.left[i]--
			d.total--
			return d.values[i]
		}
	}
	panic("ioprofile: the counts of a deck do not add up")
}
