package plan

import (
	"math"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// budget adds up the objects that the plan creates. It assumes that no op fails, is
// dropped or deletes an object. Contributions of rates without an end are not part of
// the sums: they are listed in Budget.Open.
func budget(p *Plan, nodes []*node) Budget {
	c := &counter{plan: p, made: map[*node]share{}, open: map[string]map[string]float64{}}
	for _, n := range nodes {
		c.of(n)
	}
	for i := range p.Rates {
		if parts := c.open[p.Rates[i].Name]; len(parts) > 0 {
			c.budget.Open = append(c.budget.Open, openRate(p.Runtime, &p.Rates[i], parts))
		}
	}
	return c.budget
}

// share is the contribution of one action to the budget.
type share struct {
	made int64 // volumes and snapshots
	open bool  // a rate without an end makes more of them
	// ops counts the ops of the action, opsOfOne those of one trigger. each counts the
	// volumes and snapshots of one op.
	ops, opsOfOne, each int64
	ended               bool // the rate has an end
	rate                string
}

// counter is the state of one pass over the actions.
type counter struct {
	plan   *Plan
	budget Budget
	made   map[*node]share
	// open is, by rate without an end, what each trigger adds of each thing. It is
	// infinite if the number per trigger grows during the run.
	open map[string]map[string]float64
}

// of counts an action once, after the actions whose objects it acts on.
func (c *counter) of(n *node) share {
	if s, ok := c.made[n]; ok {
		return s
	}
	c.made[n] = share{} // ends the recursion in a cycle, which is reported elsewhere
	times, ended, rate, factor := c.occasions(n)
	var targets int64 // per trigger
	growing := false  // the number of targets grows during the run
	for _, a := range n.aims {
		s := c.of(a)
		if n.inEpisode(a) {
			targets = plus(targets, s.each)
			continue
		}
		if kind := n.out.Target.Kind; kind == engine.WorkloadObject || kind == engine.ManifestObject {
			s.made = s.ops // one object per op
		}
		targets, growing = plus(targets, s.made), growing || s.open
	}
	if n.out.Target != nil && n.out.Target.Object != nil {
		targets = 1
	}
	switch r := rateOf(c.plan, n); {
	case r != nil && r.Steps != nil:
		targets, growing = 1, false
	case r != nil && r.Lifetime != nil: // one trigger for all targets
	case n.out.Target != nil && n.out.Target.Select != SelectAll:
		if growing {
			targets, growing = 1, false
		}
		targets = min(targets, 1)
	}
	one := n.each(targets)                                                  // for one trigger
	if v := n.out.Volume; c.plan.Cluster && v != nil && v.Template.Attach { // a pod holds each of them
		one.things[pods] = plus(one.things[pods], one.things[volumes])
	}
	for _, thing := range sortedKeys(one.things) {
		switch {
		case growing:
			c.adds(rate, thing, math.Inf(1))
		case !ended && one.things[thing] > 0:
			c.adds(rate, thing, float64(mul(factor, one.things[thing])))
		}
	}
	b := &c.budget
	b.Ops = plus(b.Ops, mul(times, one.ops))
	if n.inline != nil {
		b.Objects = append(b.Objects, ObjectBudget{Action: string(n.spec.Name), Times: times, Open: !ended,
			Works: n.inline.Works, Makes: n.inline.Makes})
	}
	b.Pods = plus(b.Pods, mul(times, one.things[pods]))
	b.Snapshots = plus(b.Snapshots, mul(times, one.things[snapshots]))
	b.add(times, one.classes)
	makes := plus(one.things[volumes], one.things[snapshots])
	c.made[n] = share{made: mul(times, makes), open: !ended || growing, ops: mul(times, one.ops),
		opsOfOne: mul(factor, one.ops),
		each:     makes / max(one.ops, 1), ended: ended, rate: rate}
	return c.made[n]
}

// each returns the effect of one trigger with a number of targets.
func (n *node) each(targets int64) trigger {
	switch {
	case n.does == nil:
		return trigger{}
	case n.does.each != nil:
		return n.does.each(n, targets)
	}
	return trigger{map[string]int64{n.does.plural: targets}, targets, nil}
}

// add adds the volumes of a number of triggers; each is what one trigger creates, by
// StorageClass.
func (b *Budget) add(times int64, each map[string]ClassBudget) {
	for _, class := range sortedKeys(each) {
		made := ClassBudget{mul(times, each[class].Volumes), mul(times, each[class].Bytes)}
		if made.Volumes == 0 {
			continue
		}
		if b.Classes == nil {
			b.Classes = map[string]ClassBudget{}
		}
		b.Volumes, b.Bytes = plus(b.Volumes, made.Volumes), plus(b.Bytes, made.Bytes)
		b.Classes[class] = ClassBudget{plus(b.Classes[class].Volumes, made.Volumes),
			plus(b.Classes[class].Bytes, made.Bytes)}
	}
}

// occasions returns how often an action is triggered, whether that number is bounded,
// the rate at the start of its chain of actions, and how often one trigger of that
// rate triggers the action.
func (c *counter) occasions(n *node) (times int64, ended bool, rate string, factor int64) {
	if len(n.heads) == 0 {
		times, ended = 1, true
		for i := range c.plan.Rates {
			if r := &c.plan.Rates[i]; r.Name == n.out.Rate {
				times, ended = triggersOf(c.plan, r, n)
			}
		}
		return times, ended, n.out.Rate, 1
	}
	ended = true
	for _, head := range n.heads {
		s := c.of(head)
		times, ended = plus(times, s.ops), ended && s.ended
		if rate == "" || !s.ended {
			rate, factor = s.rate, s.opsOfOne
		}
	}
	return times, ended, rate, factor
}

func (c *counter) adds(rate, thing string, n float64) {
	if c.open[rate] == nil {
		c.open[rate] = map[string]float64{}
	}
	c.open[rate][thing] += n
}
