package summary

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// workloads returns every action with instances in order of name; the stages of an object
// storage run in order of time.
func workloads(d *dataset.Data) []Workload {
	byAction := map[string]*Workload{}
	for _, name := range instanceNames(d) {
		action := actionOf(d, name)
		ofAction := func(instance string) bool { return actionOf(d, instance) == action }
		w := byAction[action]
		if w == nil {
			w = &Workload{Action: action, Metrics: merged(d, ofAction, allPhases), Values: values(d, ofAction, allPhases),
				Phases: phases(d, action, ofAction)}
			if syncs, ok := d.Syncs(action); ok {
				w.Syncs = &syncs
			}
			byAction[action] = w
		}
		w.Instances = append(w.Instances, instance(d, name))
		w.CutOff = w.CutOff || d.CutOff[name]
		w.addVariant(d, name)
	}
	var list []Workload
	for _, w := range byAction {
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b Workload) int {
		if d.Bundle.Run.ObjectsOnly() { // its stages
			return cmp.Or(cmp.Compare(began(d, a), began(d, b)), cmp.Compare(a.Action, b.Action))
		}
		return cmp.Compare(a.Action, b.Action)
	})
	return list
}

// invalidate marks workloads with an instance that did no I/O, or whose figures are from
// a part of its output.
func (s *Summary) invalidate() {
	for i := range s.Workloads {
		w := &s.Workloads[i]
		for _, f := range s.Validity {
			if w.Invalid != "" || f.Severity != validity.Invalid || f.Name != validity.NoIO &&
				f.Name != validity.OutputCut {
				continue
			}
			if those := w.instancesOf(validity.Sources(f)); len(those) > 0 {
				_, what, _ := strings.Cut(f.Evidence, ": ")
				w.Invalid = validity.Instances(those) + ": " + what
			}
		}
	}
}

// instancesOf returns the instances of the workload among the sources of a flag.
func (w *Workload) instancesOf(sources []string) (names []string) {
	for _, in := range w.Instances {
		if slices.ContainsFunc(sources, func(s string) bool {
			return s == in.Name ||
				strings.HasPrefix(s, in.Name+"/")
		}) {
			names = append(names, in.Name)
		}
	}
	return names
}

// began returns when the first container of a workload began; math.MaxInt64 if unknown.
func began(d *dataset.Data, w Workload) op.Time {
	at := op.Time(math.MaxInt64)
	for _, i := range d.Instances {
		for _, s := range i.Starts {
			if s.At.Known() && slices.ContainsFunc(w.Instances, func(x Instance) bool { return x.Name == i.Name }) {
				at = min(at, s.At)
			}
		}
	}
	return at
}

// addVariant counts an instance to its variant.
func (w *Workload) addVariant(d *dataset.Data, name string) {
	vars := d.Variant(name)
	if vars == "" {
		return
	}
	i := slices.IndexFunc(w.Variants, func(v Variant) bool { return v.Vars == vars })
	if i < 0 {
		i = len(w.Variants)
		same := func(instance string) bool {
			return actionOf(d, instance) == w.Action && d.Variant(instance) == vars
		}
		w.Variants = append(w.Variants, Variant{Vars: vars, Metrics: merged(d, same, allPhases),
			Values: values(d, same, allPhases)})
	}
	w.Variants[i].Instances++
}

func instanceNames(d *dataset.Data) []string {
	names := map[string]bool{}
	for _, i := range d.Instances {
		names[i.Name] = true
	}
	for _, h := range d.Totals {
		names[h.Instance] = true
	}
	for _, x := range d.Scalars {
		names[x.Instance] = true
	}
	for _, c := range d.Canaries {
		names[c.Instance] = true
	}
	return slices.SortedFunc(maps.Keys(names), func(a, b string) int { // fio-2 before fio-10
		return cmp.Or(cmp.Compare(dataset.ActionOf(a), dataset.ActionOf(b)), cmp.Compare(len(a), len(b)),
			cmp.Compare(a, b))
	})
}

func actionOf(d *dataset.Data, instance string) string {
	for _, h := range d.Totals {
		if h.Instance == instance {
			return h.Action
		}
	}
	return dataset.ActionOf(instance)
}

func instance(d *dataset.Data, name string) Instance {
	this := func(instance string) bool { return instance == name }
	in := Instance{Name: name, CutOff: d.CutOff[name], EndedAt: op.Never, Metrics: metrics(d, this, allPhases),
		Values: values(d, this, allPhases), Phases: phases(d, actionOf(d, name), this)}
	for _, c := range d.Canaries {
		if c.Instance == name {
			in.Metrics = append(in.Metrics, canaryMetrics(d, []dataset.Canary{c}, c.Volume)...)
		}
	}
	if i := slices.IndexFunc(d.Instances, func(x bundle.Instance) bool { return x.Name == name }); i >= 0 {
		in.setLifetime(d.Instances[i])
	}
	in.CPUs, in.Detail = d.CPUs(name), detail(d, name)
	in.setDriver(d)
	return in
}

// setDriver sets the fields of a driver: an instance of an object storage run that has
// samples and no start.
func (in *Instance) setDriver(d *dataset.Data) {
	started := slices.ContainsFunc(d.Instances, func(x bundle.Instance) bool { return x.Name == in.Name })
	if d.Bundle == nil || !d.Bundle.Run.ObjectsOnly() || started || dataset.ActionOf(in.Name) != "driver" {
		return
	}
	in.Driver = true
	if s := d.SamplesOf(in.Name); s != nil {
		in.MaxRSSBytes = s.MaxRSSBytes
	}
}

func (in *Instance) setLifetime(r bundle.Instance) {
	for _, s := range r.Starts {
		if s.Intended.Known() && s.At.Known() {
			if v := int64(s.At - s.Intended); in.SkewNs == nil || v > *in.SkewNs {
				in.SkewNs, in.SkewErrorNs = &v, s.Err
			}
		}
	}
	if r.End != nil {
		in.EndedAt, in.OK, in.Containers = r.End.At, &r.End.OK, r.End.Containers
	}
}

// phases returns the metrics of the wanted instances in each phase of their action.
func phases(d *dataset.Data, action string, wanted func(instance string) bool) []Phase {
	given := d.Phases(action)
	if len(given) == 0 {
		return nil
	}
	list := []Phase{{Metrics: merged(d, wanted, 0), Values: values(d, wanted, 0)}}
	for i, p := range given {
		var vars []string
		for _, name := range slices.Sorted(maps.Keys(p.Vars)) {
			vars = append(vars, name+"="+p.Vars[name])
		}
		list = append(list, Phase{Phase: i + 1, StartAfter: p.StartAfter, Vars: strings.Join(vars, " "),
			Metrics: merged(d, wanted, i+1), Values: values(d, wanted, i+1)})
	}
	return list
}

// values returns the other metrics of the wanted instances together, in one phase or all. Over several phases they are
// of the series, as rates are.
func values(d *dataset.Data, wanted func(instance string) bool, phase int) []dataset.Figure {
	changes := false
	of := dataset.Selection{Instance: func(instance string, p int) bool {
		if !wanted(instance) {
			return false
		}
		changes = changes || len(d.Phases(dataset.ActionOf(instance))) > 0
		return phase == allPhases || phase == p
	}}
	list := d.Figures(of)
	if changes && phase == allPhases {
		of.Slice = func(instance string, from, _ op.Time) bool { return from >= d.MeasuredFrom(instance) }
		list = d.Figures(of)
	}
	return list
}

// allPhases stands for all phases in place of a number.
const allPhases = -1

// merged returns the metrics of the wanted instances together, in one phase or all.
func merged(d *dataset.Data, wanted func(instance string) bool, phase int) []Metric {
	ms := metrics(d, wanted, phase)
	var canaries []dataset.Canary
	for _, c := range d.Canaries {
		if !wanted(c.Instance) {
			continue
		}
		if phase != allPhases {
			from, to, _ := d.PhaseSpan(c.Instance, phase)
			c.IOs = slices.DeleteFunc(slices.Clone(c.IOs), func(io op.CanaryIO) bool {
				return io.Intended < from ||
					io.Intended >= to
			})
		}
		canaries = append(canaries, c)
	}
	return append(ms, canaryMetrics(d, canaries, "")...)
}

// metrics returns the metrics of the wanted instances: histograms are merged, counts added up. A rate without latencies
// is a metric too.
func metrics(d *dataset.Data, instances func(instance string) bool, phase int) []Metric {
	wanted := func(instance string, of int) bool { return instances(instance) && (phase == allPhases || phase == of) }
	samples := map[string]*stats.Sample{}
	var ms []Metric
	for _, h := range d.Totals {
		if !wanted(h.Instance, h.Phase) {
			continue
		}
		if samples[h.Metric] == nil {
			samples[h.Metric] = &stats.Sample{}
			ms = append(ms, Metric{Name: h.Metric, Basis: h.Basis})
		}
		_ = samples[h.Metric].AddHistogram(h.Hist) // counts of a run do not overflow
	}
	changes := false // in phases: there is a rate of each
	rate := func(x bundle.Labels, name string) {
		operation, ok := metric.RateOf(name)
		if !ok || !wanted(x.Instance, x.Phase) {
			return
		}
		changes = changes || len(d.Phases(x.Action)) > 0
		if !slices.ContainsFunc(ms, func(m Metric) bool { return m.Name == operation }) {
			ms = append(ms, Metric{Name: operation})
		}
	}
	for _, x := range d.Scalars {
		rate(x.Labels, x.Metric)
	}
	for _, x := range d.Series { // of a tool that left nothing else, since it was killed
		rate(x.Labels, x.Metric)
	}
	for i := range ms {
		m := &ms[i]
		m.Errors = sumOf(d, m.Name+metric.Failed, wanted)
		m.OK, m.Lost = sumOf(d, m.Name+metric.Completed, wanted), sumOf(d, m.Name+metric.Lost, wanted)
		if s := samples[m.Name]; s != nil {
			s.AddInfinite(m.Lost) // they were due and never done
			m.Latency = ioLatency(s)
		}
		if phase != allPhases || !changes {
			m.PerSecond = throughputOf(d, m.Name+metric.IOPS, wanted)
			m.BandwidthBytesSec = throughputOf(d, m.Name+metric.Bandwidth, wanted)
		}
		if m.PerSecond != nil && *m.PerSecond > 0 && m.BandwidthBytesSec != nil && *m.BandwidthBytesSec == 0 {
			m.BandwidthBytesSec = nil // it moves no bytes, such as a delete
		}
	}
	for i := range ms {
		ms[i].Part = slices.ContainsFunc(ms, func(of Metric) bool { return partOf(ms[i].Name, of.Name) })
	}
	slices.SortFunc(ms, func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
	return ms
}

// partOf reports whether a metric is a part of another, or of its failures.
func partOf(name, of string) bool {
	rest, ok := strings.CutPrefix(name, of)
	return ok && rest != "" && (rest[0] == '.' || rest[0] == '!' || rest[0] == '@')
}

// ioLatency has no interval of the median: consecutive I/Os are not independent.
func ioLatency(s *stats.Sample) Latency {
	l := latencyOf(s)
	l.MedianInterval = nil
	return l
}

// sumOf sums a count over instances, their lives and phases.
func sumOf(d *dataset.Data, name string, wanted func(instance string, phase int) bool) (sum int64) {
	for _, x := range d.Scalars {
		if x.Metric == name && wanted(x.Instance, x.Phase) {
			sum += int64(x.Value)
		}
	}
	return sum
}

// throughputOf returns the rate or bandwidth of instances; nil: it is unknown.
func throughputOf(d *dataset.Data, name string, wanted func(instance string, phase int) bool) *float64 {
	f, ok := d.Figure(name, dataset.Selection{Instance: wanted})
	if !ok {
		return nil
	}
	return &f.Value
}

// canaryMetrics returns the canary's response and service times and its lateness; an I/O that had not ended, or started,
// is a lower bound.
func canaryMetrics(d *dataset.Data, canaries []dataset.Canary, volume string) []Metric {
	var ms []Metric
	for _, write := range []bool{false, true} {
		m := Metric{Name: metric.Canary(write), Volume: volume}
		var response, service, late stats.Sample
		for _, c := range canaries {
			watched := d.WatchedUntil(&c)
			add := func(to *stats.Sample, from, until op.Time, io op.CanaryIO) {
				switch {
				case !from.Known():
				case until.Known():
					to.Add(int64(until - from))
				default:
					to.AddAtLeast(int64(max(0, watched(io)-from)))
				}
			}
			for _, io := range c.IOs {
				switch {
				case io.Write != write:
				case io.Errno != 0:
					m.Errors++
				default:
					add(&response, io.Intended, io.Ended, io)
					add(&service, io.Started, io.Ended, io)
					add(&late, io.Intended, io.Started, io)
				}
			}
		}
		if m.Latency = ioLatency(&response); response.N()+m.Errors > 0 {
			s, l := ioLatency(&service), ioLatency(&late)
			m.Service, m.Lateness = &s, &l
			ms = append(ms, m)
		}
	}
	return ms
}
