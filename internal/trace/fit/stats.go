// Package fit computes the statistics of a trace and fits a short Benchmark to it: rates, mix, lifetimes, and the
// number of objects at one time.
package fit

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/trace"
)

// Stats are the statistics of a trace.
type Stats struct {
	Records  int          `json:"records"`
	LengthNs int64        `json:"lengthNs"`
	Ops      []OpStats    `json:"ops"`
	Objects  []KindStats  `json:"objects"`
	Depends  []Dependency `json:"dependencies"`
}

// OpStats are the statistics of one operation on one kind of object.
type OpStats struct {
	Op   trace.Op   `json:"op"`
	Kind trace.Kind `json:"kind"`
	Arrivals
	Failed int `json:"failed"`
	// Of the operations with known durations: their number, median and p99 duration, and the mean and maximum
	// of operations in flight.
	Timed    int     `json:"timed"`
	P50Ns    int64   `json:"durationP50Ns"`
	P99Ns    int64   `json:"durationP99Ns"`
	InFlight float64 `json:"inFlightMean"`
	Peak     int     `json:"inFlightMax"`
}

// KindStats are the statistics of the objects of a kind. By Little's law, Mean in equilibrium is the rate of
// creations times the mean lifetime; Little is the quotient.
type KindStats struct {
	Kind      trace.Kind `json:"kind"`
	AtStart   int        `json:"atStart"`
	AtEnd     int        `json:"atEnd"`
	Least     int        `json:"least"`
	Most      int        `json:"most"`
	Mean      float64    `json:"mean"` // over time
	Lifetimes Lifetimes  `json:"lifetimes"`
	Little    float64    `json:"little"`
}

// Dependency counts the operations that act on an object of a kind.
type Dependency struct {
	Op trace.Op   `json:"op"`
	On trace.Kind `json:"on"`
	N  int        `json:"n"`
	// Within counts objects created within the trace.
	Within int `json:"within"`
}

// Describe computes the statistics. Records must be sorted by time.
func Describe(records []trace.Record) Stats {
	d := describe(records)
	s := Stats{LengthNs: d.length, Depends: d.dependencies()}
	for _, k := range slices.SortedFunc(maps.Keys(d.ops), func(a, b opKind) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.op, b.op))
	}) {
		o := d.stats(k)
		s.Records += o.N
		s.Ops = append(s.Ops, o)
	}
	for _, k := range slices.Sorted(maps.Keys(d.kinds)) {
		s.Objects = append(s.Objects, d.objects(k))
	}
	return s
}

type opKind struct {
	op   trace.Op
	kind trace.Kind
}

// description is the result of one pass over a trace.
type description struct {
	length int64
	ops    map[opKind][]*trace.Record // those from time 0 on
	times  map[opKind][]int64
	kinds  map[trace.Kind]*population
	alive  map[string]*birth
	needs  map[opKind]*Dependency
}

// birth is the creation of an existing object.
type birth struct {
	at      int64
	unknown bool // at is unknown
	within  bool // created within the trace
}

// population is the number of objects of a kind over time.
type population struct {
	now, atStart, least, most int
	area                      float64 // number · ns
	last                      int64
	lives                     []life
	unknown, made             int
}

func (p *population) change(at int64, by int) {
	at = max(at, 0)
	p.area += float64(p.now) * float64(at-p.last)
	p.last = at
	p.now += by
	if at == 0 {
		p.least, p.most = p.now, p.now
		return
	}
	p.least, p.most = min(p.least, p.now), max(p.most, p.now)
}

func describe(records []trace.Record) *description {
	d := &description{length: trace.Length(records), ops: map[opKind][]*trace.Record{}, times: map[opKind][]int64{},
		kinds: map[trace.Kind]*population{}, alive: map[string]*birth{}, needs: map[opKind]*Dependency{}}
	for i := range records {
		if r := &records[i]; r.Op != trace.End {
			d.record(r)
		}
	}
	for key, b := range d.alive {
		kind, _, _ := strings.Cut(key, "/")
		d.ends(d.kinds[trace.Kind(kind)], b, d.length, false)
	}
	for _, p := range d.kinds {
		p.change(d.length, 0)
	}
	return d
}

func (d *description) record(r *trace.Record) {
	p := d.kinds[r.Kind]
	if p == nil {
		p = &population{}
		d.kinds[r.Kind] = p
	}
	within := r.Time >= 0 && r.Op != trace.Exists
	if within {
		k := opKind{r.Op, r.Kind}
		d.ops[k] = append(d.ops[k], r)
		d.times[k] = append(d.times[k], r.Time)
		d.depends(r)
	}
	key := r.Key()
	switch {
	case r.Failed():
	case r.Op.Makes():
		if d.alive[key] != nil {
			return // created twice: the first creation is used
		}
		d.alive[key] = &birth{at: r.Time, unknown: r.Op == trace.Exists, within: within}
		p.change(r.Time, 1)
		if !within {
			p.atStart++
		} else {
			p.made++
		}
	case r.Op.Removes():
		b := d.alive[key]
		if b == nil { // the object existed, but the trace has no creation
			p.unknown++
			return
		}
		delete(d.alive, key)
		p.change(r.Time, -1)
		d.ends(p, b, r.Time, true)
	}
}

// ends records the observed part of a life.
func (d *description) ends(p *population, b *birth, at int64, ended bool) {
	if b.unknown {
		p.unknown++
		return
	}
	p.lives = append(p.lives, life{from: max(0, -b.at), to: at - b.at, ended: ended})
}

// depends counts the objects that an operation acts on.
func (d *description) depends(r *trace.Record) {
	var on []string
	switch {
	case r.Op == trace.Create && r.Source == "":
		return
	case r.Op.Makes():
		on = r.SourceKeys()
	default:
		on = []string{r.Key()}
	}
	for _, key := range on {
		kind, _, _ := strings.Cut(key, "/")
		k := opKind{r.Op, trace.Kind(kind)}
		if d.needs[k] == nil {
			d.needs[k] = &Dependency{Op: k.op, On: k.kind}
		}
		d.needs[k].N++
		if b := d.alive[key]; b != nil && b.within {
			d.needs[k].Within++
		}
	}
}

func (d *description) dependencies() (list []Dependency) {
	for _, n := range d.needs {
		list = append(list, *n)
	}
	slices.SortFunc(list, func(a, b Dependency) int { return cmp.Or(cmp.Compare(a.On, b.On), cmp.Compare(a.Op, b.Op)) })
	return list
}

func (d *description) stats(k opKind) OpStats {
	o := OpStats{Op: k.op, Kind: k.kind, Arrivals: arrivalsOf(d.times[k], d.length)}
	type edge struct {
		at int64
		by int
	}
	var edges []edge
	var took []int64
	sum := 0.0
	for _, r := range d.ops[k] {
		if r.Failed() {
			o.Failed++
		}
		if r.Duration != trace.Unknown {
			took = append(took, r.Duration)
			sum += float64(r.Duration)
			edges = append(edges, edge{r.Time, 1}, edge{r.Time + r.Duration, -1})
		}
	}
	if o.Timed = len(took); o.Timed == 0 {
		return o
	}
	slices.Sort(took)
	o.P50Ns, o.P99Ns = took[len(took)/2], took[len(took)*99/100]
	o.InFlight = sum / float64(max(d.length, 1))
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now := 0
	for _, e := range edges {
		now += e.by
		o.Peak = max(o.Peak, now)
	}
	return o
}

func (d *description) objects(kind trace.Kind) KindStats {
	p := d.kinds[kind]
	s := KindStats{Kind: kind, AtStart: p.atStart, AtEnd: p.now, Least: p.least, Most: p.most,
		Lifetimes: estimate(p.lives)}
	s.Lifetimes.Unknown = p.unknown
	if d.length > 0 {
		s.Mean = p.area / float64(d.length)
		if expected := float64(p.made) / float64(d.length) * float64(s.Lifetimes.Mean); expected > 0 {
			s.Little = s.Mean / expected
		}
	}
	return s
}
