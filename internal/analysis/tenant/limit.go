package tenant

import (
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Bounds of the judgement of a limit. A mean over fewer seconds may be a burst that the mechanism allows.
const (
	exceededBy   = 1.1 // measured ÷ limit from which a limit was not held
	noEffectFrom = 2.0 // from which it had no effect
	reachedFrom  = 0.9 // below which it was never reached
	leastSeconds = 3
)

// Exceeded reports whether more than a tenth above the limit was measured.
func (l *Limit) Exceeded() bool { return l.Measured != nil && *l.Measured > exceededBy*l.Limit }

// Reached reports whether the load came near the limit, without which nothing is known of the mechanism.
func (l *Limit) Reached() bool { return l.Measured != nil && *l.Measured >= reachedFrom*l.Limit }

// Evidence says in words what became of a limit of a tenant.
func (l *Limit) Evidence(tenant string) string {
	what, _ := metric.RateOf(l.Metric)
	show := func(v float64) string { return units.Count(v) + " " + what + " IOPS" }
	if l.Unit == metric.BytesPerSecond {
		show = func(v float64) string { return units.Bandwidth(v) + " of " + what + "s" }
	}
	limit := fmt.Sprintf("%s: limit of %s by %s", tenant, show(l.Limit), l.EnforcedBy)
	if l.Measured == nil {
		return fmt.Sprintf("%s: not measured: no step has %d seconds of such I/O", limit, leastSeconds)
	}
	where := fmt.Sprintf("%s measured (%s, %s, mean of %d s)", show(*l.Measured), l.Instance, l.Step, l.Seconds)
	switch {
	case *l.Measured > noEffectFrom*l.Limit:
		return limit + " had no effect: " + where
	case l.Exceeded():
		return limit + " was not held: " + where
	case !l.Reached():
		return limit + " was never reached, so it was not tested: at most " + where
	}
	return limit + " was held: at most " + where
}

// limits compares the limits of a tenant with the rates that its tools reported.
func limits(d *dataset.Data, t *dataset.Tenant, steps []Step) (list []Limit) {
	if t.Limit == nil {
		return nil
	}
	add := func(name, unit string, limit float64) {
		if limit <= 0 {
			return
		}
		l := Limit{Metric: name, Unit: unit, EnforcedBy: t.Limit.EnforcedBy, Limit: limit}
		for _, i := range d.Instances {
			if !slices.Contains(t.Actions, dataset.ActionOf(i.Name)) {
				continue
			}
			for _, s := range steps {
				l.raise(d, i.Name, s)
			}
		}
		list = append(list, l)
	}
	add(metric.Read+metric.IOPS, metric.PerSecond, t.Limit.ReadIOPS)
	add(metric.Write+metric.IOPS, metric.PerSecond, t.Limit.WriteIOPS)
	add(metric.Read+metric.Bandwidth, metric.BytesPerSecond, t.Limit.ReadBps)
	add(metric.Write+metric.Bandwidth, metric.BytesPerSecond, t.Limit.WriteBps)
	return list
}

// raise takes the mean rate of an instance in a step if it is the greatest.
func (l *Limit) raise(d *dataset.Data, instance string, s Step) {
	sum, time := 0.0, int64(0)
	for _, x := range d.Series {
		if x.Instance != instance || x.Metric != l.Metric {
			continue
		}
		for _, p := range x.Points {
			if p.At >= s.From && p.At+op.Time(x.Step) <= s.To {
				sum += p.Value * float64(x.Step)
				time += x.Step
			}
		}
	}
	if time < leastSeconds*1e9 {
		return
	}
	if mean := sum / float64(time); l.Measured == nil || mean > *l.Measured {
		l.Measured, l.Instance, l.Step, l.Seconds = &mean, instance, s.Name, int(time/1e9)
	}
}
