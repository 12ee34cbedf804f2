package dataset

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Read loads a bundle. The error names the damaged part.
func Read(b *bundle.Bundle) (*Data, error) {
	d := &Data{Bundle: b, bounds: BoundsOf(&b.Run), far: &far{left: map[string]int{}}}
	var series sync.WaitGroup
	var err, seriesErr error
	series.Go(func() { d.Series, seriesErr = collect(b.Series()) }) // as long as all else
	err = d.readAllButSeries()
	series.Wait()
	for i := range d.Series {
		d.nearPoints(&d.Series[i])
	}
	if err := errors.Join(err, seriesErr); err != nil {
		return nil, err
	}
	d.warnFar()
	d.addCutOffTotals()
	end := d.lastInstant()
	d.end = &end
	return d, nil
}

func (d *Data) readAllButSeries() error {
	b := d.Bundle
	if err := d.readSpec(); err != nil {
		return err
	}
	var err error
	if d.Instances, err = b.Instances(); err != nil {
		return err
	}
	for h, err := range b.Histograms() {
		switch {
		case err != nil:
			return err
		case h.Hist == nil, !h.Total && !d.within("slices of histograms", h.From, h.To):
		case h.Total:
			d.Totals = append(d.Totals, h)
		default:
			d.Slices = append(d.Slices, h)
		}
	}
	slices.SortStableFunc(d.Slices, func(a, b bundle.HistogramSlice) int { return cmp.Compare(a.From, b.From) })
	if err = d.readScalars(); err != nil {
		return err
	}
	if d.Machines, err = collect(b.Machines()); err != nil {
		return err
	}
	d.Machines = slices.DeleteFunc(d.Machines, func(m op.Machine) bool { return !d.within("readings of machines", m.At) })
	if d.Volumes, err = collect(b.Volumes()); err != nil {
		return err
	}
	d.Volumes = slices.DeleteFunc(d.Volumes, func(v op.VolumeReading) bool { return !d.within("readings of volumes", v.At) })
	if err := d.readQueries(); err != nil {
		return err
	}
	if err := d.readMeasured(); err != nil { // before what is counted from then on
		return err
	}
	var canaries sync.WaitGroup
	canaries.Go(func() { err = d.readCanaries() }) // as long as the samples
	samplesErr := d.ReadSamples(b.Samples())
	canaries.Wait()
	return errors.Join(samplesErr, err)
}

// readSpec decodes the spec of run.json, which is the Benchmark or its spec alone.
func (d *Data) readSpec() error {
	if len(d.Bundle.Run.Spec) == 0 {
		return nil
	}
	var facts struct {
		Variants map[string][]map[string]string `json:"variants"`
		Tenants  []Tenant                       `json:"tenants"`
	}
	if len(d.Bundle.Run.Plan) > 0 {
		if err := json.Unmarshal(d.Bundle.Run.Plan, &facts); err != nil {
			return fmt.Errorf("read plan of run.json: %w", err)
		}
	}
	d.variants, d.Tenants = facts.Variants, facts.Tenants
	var whole struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(d.Bundle.Run.Spec, &whole); err != nil {
		return fmt.Errorf("read spec of run.json: %w", err)
	}
	raw := d.Bundle.Run.Spec
	if len(whole.Spec) > 0 {
		raw = whole.Spec
	}
	if err := json.Unmarshal(raw, &d.Spec); err != nil {
		return fmt.Errorf("read spec of run.json: %w", err)
	}
	return nil
}

// greatest bounds the figures of a file, so that sums of them in other units are finite.
const greatest = 1e100

func (d *Data) readScalars() (err error) {
	d.Scalars, err = collect(d.Bundle.Scalars())
	for _, x := range d.Scalars {
		if math.Abs(x.Value) > greatest {
			return fmt.Errorf("series/scalars.jsonl: %s of %s is %g: want at most %g", x.Metric, x.Instance, x.Value, greatest)
		}
	}
	return err
}

func collect[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var list []T
	for v, err := range seq {
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func (d *Data) readCanaries() error {
	type key struct{ instance, volume string }
	index, next := map[key]int{}, 0
	for c, err := range d.Bundle.Canary() {
		if err != nil {
			return err
		}
		k := key{c.Instance, c.Volume}
		i, ok := next, next < len(d.Canaries) && k == key{d.Canaries[next].Instance, d.Canaries[next].Volume}
		if !ok { // they do not take turns
			i, ok = index[k]
		}
		if !ok {
			i = len(d.Canaries)
			index[k] = i
			d.Canaries = append(d.Canaries, Canary{Instance: c.Instance, Action: ActionOf(c.Instance),
				Volume: c.Volume})
		}
		if all := d.Canaries[i].IOs; len(all)+len(c.IOs) > cap(all) {
			d.Canaries[i].IOs = slices.Grow(all, max(len(all), len(c.IOs)))
		}
		for _, io := range c.IOs {
			if d.within("I/Os of the canary", io.Intended, io.Started, io.Ended) {
				d.Canaries[i].IOs = append(d.Canaries[i].IOs, io)
			}
		}
		next = (i + 1) % len(d.Canaries)
	}
	for i := range d.Canaries {
		c := &d.Canaries[i]
		if n := len(c.IOs); cap(c.IOs) > n+n/8 {
			c.IOs = slices.Clone(c.IOs) // without the room for more
		}
		slices.SortStableFunc(c.IOs, func(a, b op.CanaryIO) int { return cmp.Compare(a.Intended, b.Intended) })
		c.dropSetUp(d.MeasuredFrom(c.Instance))
	}
	slices.SortFunc(d.Canaries, func(a, b Canary) int {
		return strings.Compare(a.Instance+"\x00"+a.Volume, b.Instance+"\x00"+b.Volume)
	})
	return nil
}

// readQueries gathers the readings of each query, in order of their names.
func (d *Data) readQueries() error {
	at := map[string]int{}
	for r, err := range d.Bundle.Queries() {
		if err != nil {
			return err
		}
		if !d.within("answers to queries", r.At) {
			continue
		}
		i, known := at[r.Query]
		if !known {
			i = len(d.Queries)
			at[r.Query] = i
			d.Queries = append(d.Queries, Query{Name: r.Query})
		}
		d.Queries[i].Add(r)
	}
	slices.SortFunc(d.Queries, func(a, b Query) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// Query returns the query of a name, or nil.
func (d *Data) Query(name string) *Query {
	for i := range d.Queries {
		if d.Queries[i].Name == name {
			return &d.Queries[i]
		}
	}
	return nil
}
