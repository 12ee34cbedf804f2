package loadgen

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
	"github.com/cnsbench/cnsbench/internal/op"
)

// spreader is a client.Store of several endpoints.
type spreader interface {
	Names() ([]string, error)
	ClientOf(worker int) (client.Client, error)
	Outages(from, to op.Time) []metric.Outage
	TokenRequests() int64
}

// endpointsOf returns the names of a store's endpoints; one empty name without several.
func endpointsOf(s client.Store) ([]string, error) {
	x, ok := s.(spreader)
	if !ok {
		return []string{""}, nil
	}
	names, err := x.Names()
	if err != nil || len(names) > 1 {
		return names, err
	}
	return []string{""}, nil
}

// routes describes the connections of a store.
func routes(s client.Store) []string {
	if r, ok := s.(client.Router); ok {
		return r.Routes()
	}
	return nil
}

func newWorking(c *Config, stage string, w *model.Work, s client.Store) (*working, error) {
	k := &working{config: c, work: w, stage: stage, store: s, where: s.Describe(), cursors: make([]cursors, len(w.Ops)),
		files: make([][]file, len(w.Ops)), keys: make([]*keyList, len(w.Ops))}
	ends, err := endpointsOf(s)
	if err != nil {
		return nil, err
	}
	k.halted.Store(int64(op.Never))
	said := &words{}
	for range min(w.Workers, 2*runtime.GOMAXPROCS(0)) {
		m := newMeter(len(w.Ops), w.Rate != nil, ends, said)
		m.log, m.stage, m.work = c.Log, stage, w
		k.meters = append(k.meters, m)
	}
	for i := range w.Ops {
		o, c := &w.Ops[i], &k.cursors[i]
		c.containers.Begin(w.Start(o.Containers))
		c.objects.Begin(w.Start(o.Objects))
		c.sizes.Begin(w.Start(o.Sizes.Spec))
		if o.Type == model.FileWrite {
			var err error
			if k.files[i], err = listFiles(o.Files); err != nil {
				return nil, err
			}
			c.files.Begin(w.Start(selector.Spec{High: int64(len(k.files[i])) - 1}))
		}
	}
	return k, nil
}

// start sets the instants of the work.
func (k *working) start(now op.Time) {
	from, to, end := k.work.Windows()
	k.began, k.from, k.to, k.end = now, now+op.Time(from), op.Never, op.Never
	if end > 0 {
		k.to, k.end = now+op.Time(to), now+op.Time(end)
	}
	if k.work.Rate != nil {
		k.dues = &dues{seq: k.work.Rate.New(seedOf(k.config.Seed, k.stage, k.work.Name)), begin: now, end: k.end,
			turns: k.work.Turns()}
	}
}

// ramp reports whether an operation due at that instant is outside of the measured window.
func (k *working) ramp(due op.Time) bool {
	return due < k.from || k.to.Known() && due >= k.to
}

// over reports whether no more operations begin at that instant.
func (k *working) over(now op.Time) bool {
	return k.stopped() || k.end.Known() && now >= k.end ||
		k.work.TotalBytes > 0 && k.bytes.Load() >= k.work.TotalBytes
}

// halt stops the work.
func (k *working) halt() {
	k.halted.CompareAndSwap(int64(op.Never), int64(k.config.Clock.Now()))
}

// ticket is the right to begin one more operation.
func (k *working) ticket() bool {
	return k.work.TotalOps == 0 || k.ops.Add(1) <= k.work.TotalOps
}

// take gathers what the workers have done since it was called last.
func (k *working) take() (Cells, error) {
	all := Cells{}
	for _, m := range k.meters {
		if err := m.moveTo(all); err != nil {
			return nil, fmt.Errorf("work %s: %w", k.work.Name, err)
		}
	}
	return all, nil
}

// next is the next one of this host; false if there are no more before the end.
func (d *dues) next() (op.Time, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for !d.done {
		t, ok := d.seq.Next()
		due := d.begin + op.Time(t.Due)
		if !ok || d.end.Known() && due >= d.end {
			d.done = true
			break
		}
		if d.n++; d.turns.Fall(d.n - 1) {
			return due, true
		}
	}
	return 0, false
}

// seedOf makes a seed of the run's and of names.
func seedOf(seed uint64, names ...string) uint64 {
	h := fnv.New64a()
	for _, n := range names {
		_, _ = h.Write(append([]byte(n), 0)) // never fails
	}
	return seed ^ h.Sum64()
}

// worker is the i-th of this host's.
func (k *working) worker(i int) (*worker, error) {
	seed, index := seedOf(k.config.Seed, k.stage, k.work.Name), k.work.FirstWorker+i
	c, err := k.client(index)
	if err != nil {
		return nil, err
	}
	w := &worker{working: k, index: index, client: c, meter: k.meters[i%len(k.meters)],
		rng:    rand.New(rand.NewPCG(seed, uint64(index))),
		writer: rand.New(rand.NewPCG(seed^k.config.nonce, uint64(index)))}
	sum := 0
	for j := range k.work.Ops {
		o := &k.work.Ops[j]
		p, err := w.pickersOf(o, &k.cursors[j])
		if err != nil {
			return nil, atLine(o.Line, err)
		}
		w.pickers = append(w.pickers, p)
		w.options = append(w.options, o.Options.OrNil())
		w.steps = append(w.steps, func(s client.Step, r *client.Result) {
			w.meter.step(j, s, w.inRamp, r)
		})
		if !p.idle {
			sum += o.Weight
		}
		w.upTo = append(w.upTo, sum)
	}
	return w, nil
}

// pickersOf starts the selectors of an operation: a worker with a part of its
// own has its own place in it.
func (w *worker) pickersOf(o *model.Op, shared *cursors) (p pickers, err error) {
	inContainers, inObjects := o.Part(w.index, w.work.AllWorkers())
	start := func(s selector.Spec, part selector.Part, shared *selector.Cursor) selector.Picker {
		if s.Kind == 0 || err != nil {
			return nil
		}
		s, any := part.Of(s)
		if !any {
			p.idle = true
			return nil
		}
		if part.Count > 1 && s.Divisible() {
			shared = nil
		}
		var q selector.Picker
		q, err = s.Picker(shared, w.rng)
		return q
	}
	p.containers = start(o.Containers, inContainers, &shared.containers)
	if w.work.Owns(o) && o.Objects.Kind != 0 && err == nil {
		var mine bool
		p.objects, mine, err = selector.Part{Index: w.index, Count: w.work.AllWorkers()}.Stride(o.Objects, w.rng)
		p.idle = p.idle || !mine
	} else {
		p.objects = start(o.Objects, inObjects, &shared.objects)
	}
	p.sizes = start(o.Sizes.Spec, selector.Part{}, &shared.sizes)
	return p, err
}

// rest is how long a worker of a closed loop waits after an operation that was not served, so that a server that is
// down, or refuses all, does not receive a million requests a second.
const rest = 100 * time.Millisecond

// rests reports whether a worker of a closed loop waits after an operation: it had no response, or the server can serve
// none (503) or knows no such user (401).
func rests(r *client.Result) bool {
	return r.Failure != "" && r.Failure != httpconn.Aborted || r.Status == 503 || r.Status == 401
}

// run executes the worker's operations until its work ends.
func (w *worker) run(ctx context.Context) {
	defer w.client.Close()
	switch {
	case w.work.Special():
		w.once(ctx)
	case len(w.upTo) == 0 || w.upTo[len(w.upTo)-1] == 0:
		return // this worker has nothing to do
	case w.dues != nil:
		w.openLoop(ctx)
	default:
		w.closedLoop(ctx)
	}
}

func (w *worker) closedLoop(ctx context.Context) {
	now := w.config.Clock.Now()
	for !w.over(now) && w.ticket() {
		i := w.choose()
		w.inRamp = w.ramp(now) // not when it began: one that began late would count nowhere
		w.do(ctx, i)
		w.meter.record(w.index, i, w.result.Started, w.inRamp, false, &w.result)
		w.checks(ctx, i, &w.work.Ops[i])
		if now = max(w.result.Ended, w.probe.Ended); rests(&w.result) {
			w.sleep(ctx, now+op.Time(rest))
			now = w.config.Clock.Now()
		}
	}
}

// openLoop begins operations when they are due, or as soon as a worker is free; those that did not begin before the
// end are dropped.
func (w *worker) openLoop(ctx context.Context) {
	for {
		due, ok := w.dues.next()
		if !ok && w.end.Known() { // the work lasts until its end, although nothing more is due
			w.sleep(ctx, w.end)
		}
		if !ok || !w.ticket() {
			return
		}
		i := w.choose()
		if !w.sleep(ctx, due) || w.over(w.config.Clock.Now()) {
			if at := op.Time(w.halted.Load()); at.Known() && due > at {
				return // it was not due yet
			}
			if w.work.TotalBytes > 0 && w.bytes.Load() >= w.work.TotalBytes {
				return // there is nothing left to do
			}
			w.meter.drop(w.index, i, due, w.ramp(due))
			continue
		}
		w.inRamp = w.ramp(due)
		w.do(ctx, i)
		w.meter.record(w.index, i, due, w.inRamp, false, &w.result)
		w.checks(ctx, i, &w.work.Ops[i])
	}
}

// choose draws an operation by weight.
func (w *worker) choose() int {
	n := len(w.upTo)
	if n == 1 {
		return 0
	}
	draw, i := w.rng.IntN(w.upTo[n-1]), 0
	for draw >= w.upTo[i] {
		i++
	}
	return i
}

// once goes through a special work's items: each of the worker's containers,
// with each of its objects.
func (w *worker) once(ctx context.Context) {
	o := &w.work.Ops[0]
	inContainers, inObjects := o.Part(w.index, w.work.AllWorkers())
	cFrom, containers := inContainers.Slice(o.Containers.Size())
	oFrom, objects := int64(0), int64(1)
	if o.Objects.Kind != 0 {
		oFrom, objects = inObjects.Slice(o.Objects.Size())
	}
	gone := w.work.Kind == model.Cleanup || w.work.Kind == model.Dispose
	for c := range containers {
		w.name(o, o.Containers.Low+cFrom+c, o.Objects.Low)
		if w.config.absent[place(w.where, string(w.container))] {
			continue
		}
		for k := range objects {
			if w.stopped() {
				return
			}
			w.name(o, o.Containers.Low+cFrom+c, o.Objects.Low+oFrom+k)
			w.prepare(0, o, o.Objects.Low+oFrom+k)
			w.client.Do(ctx, &w.request, &w.result)
			w.bytes.Add(w.result.Bytes)
			w.meter.record(w.index, 0, w.result.Started, false, gone, &w.result)
			w.checks(ctx, 0, o)
		}
	}
}

// do runs one operation of the mix.
func (w *worker) do(ctx context.Context, i int) {
	o, p := &w.work.Ops[i], &w.pickers[i]
	object := int64(0)
	if p.objects != nil {
		object = p.objects.Next()
	}
	container := int64(0)
	if p.containers != nil {
		container = p.containers.Next()
	}
	w.name(o, container, object)
	if w.keys[i] != nil {
		w.existing(i, o)
	}
	w.prepare(i, o, object)
	if o.Type == model.FileWrite {
		w.fileWrite(ctx, i, o)
	} else {
		w.client.Do(ctx, &w.request, &w.result)
	}
	if w.work.TotalBytes > 0 {
		w.bytes.Add(w.result.Bytes)
	}
}
