package plan

import (
	"fmt"
	"math"
	"strings"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// budget adds up the objects that the plan creates. It assumes that no op fails, is
// dropped or deletes an object. Contributions of rates without an end are not part of
// the sums: they are listed in Budget.Open.
func (l *loader) budget(order []*info) {
	c := &counter{l: l, made: map[*info]share{}, open: map[string]map[string]float64{}}
	for _, n := range order {
		c.of(n)
	}
	b := &l.plan.Budget
	for i := range l.plan.Rates {
		if parts := c.open[l.plan.Rates[i].Name]; len(parts) > 0 {
			b.Open = append(b.Open, l.openRate(&l.plan.Rates[i], parts))
		}
	}
	if b.Volumes > manyVolumes {
		l.warn("spec", "see the budget: cnsbench run --dry-run", "this makes up to %d volumes", b.Volumes)
	}
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
	l    *loader
	made map[*info]share
	// open is, by rate without an end, what each trigger adds of each thing. It is
	// infinite if the number per trigger grows during the run.
	open map[string]map[string]float64
}

// of counts an action once, after the actions whose objects it acts on.
func (c *counter) of(n *info) share {
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
	switch r := c.l.rateOf(n); {
	case r != nil && r.Steps != nil:
		targets, growing = 1, false
	case r != nil && r.Lifetime != nil: // one trigger for all targets
	case n.out.Target != nil && n.out.Target.Select != SelectAll:
		if growing {
			targets, growing = 1, false
		}
		targets = min(targets, 1)
	}
	one := n.each(targets) // for one trigger
	for _, thing := range sortedKeys(one.things) {
		switch {
		case growing:
			c.adds(rate, thing, math.Inf(1))
		case !ended && one.things[thing] > 0:
			c.adds(rate, thing, float64(mul(factor, one.things[thing])))
		}
	}
	b := &c.l.plan.Budget
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
func (c *counter) occasions(n *info) (times int64, ended bool, rate string, factor int64) {
	if len(n.heads) == 0 {
		times, ended = 1, true
		for i := range c.l.plan.Rates {
			if r := &c.l.plan.Rates[i]; r.Name == n.out.Rate {
				times, ended = c.l.triggersOf(r, n)
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

// Things that the budget counts.
const (
	volumes   = "volumes"
	pods      = "pods"
	snapshots = "snapshots"
	objects   = "objects"
)

// trigger is the effect of one trigger of an action.
type trigger struct {
	things  map[string]int64 // created objects, by plural name
	ops     int64
	classes map[string]ClassBudget // volumes by StorageClass
}

// each returns the effect of one trigger with a number of targets.
func (n *info) each(targets int64) trigger {
	switch {
	case n.does == nil:
		return trigger{}
	case n.does.each != nil:
		return n.does.each(n, targets)
	}
	return trigger{map[string]int64{n.does.plural: targets}, targets, nil}
}

// manyVolumes is the number of volumes above which the plan has a warning.
const manyVolumes = 1_000_000

// triggers returns the maximum number of triggers of a rate, or the expected number
// if the schedule is random. ended is false if no bound is known before the run.
func (l *loader) triggers(r *Rate) (n int64, ended bool) {
	length := r.Duration
	if l.plan.Runtime > 0 {
		left := max(l.plan.Runtime-r.StartAfter, 0)
		if length == 0 || left < length {
			length = left
		}
	}
	if c, ok := r.Schedule.(schedule.Ending); ok && (length > 0 || l.plan.Runtime == 0) {
		n, ended = c.Count(length)
		if r.Limit > 0 && (!ended || r.Limit < n) {
			n, ended = r.Limit, true
		}
		return n, ended
	}
	if r.Schedule == nil || length == 0 && l.plan.Runtime == 0 {
		return r.Limit, r.Limit > 0
	}
	// 1e-6 compensates rounding: 30 s at an interval of 0.1 s is 300 triggers, not 299.
	expected := math.Floor(r.Schedule.PerSecond()*length.Seconds() + 1e-6)
	n = int64(min(expected, math.MaxInt64/4))
	if r.Limit > 0 && r.Limit < n {
		n = r.Limit
	}
	return n, true
}

// openRate describes what a rate without an end adds, and until when.
func (l *loader) openRate(r *Rate, parts map[string]float64) string {
	until := "until the workloads end"
	switch {
	case r.Duration > 0:
		until = fmt.Sprintf("for %v", r.Duration)
	case l.plan.Runtime > 0:
		until = fmt.Sprintf("until %v after the barrier", l.plan.Runtime)
	}
	var texts []string
	for _, thing := range sortedKeys(parts) {
		switch n := parts[thing]; {
		case r.Schedule == nil:
			texts = append(texts, thing)
		case math.IsInf(n, 1):
			texts = append(texts, "ever more "+thing)
		default:
			texts = append(texts, fmt.Sprintf("%.3g %s", n*r.Schedule.PerSecond(), thing))
		}
	}
	last := len(texts) - 1
	what := texts[last]
	if last > 0 {
		what = strings.Join(texts[:last], ", ") + " and " + what
	}
	if r.Lifetime != nil {
		return fmt.Sprintf("%s: %s, one for each object, %v after it was made on average, %s", r.Name, what,
			r.Lifetime.Expected(), until)
	}
	if r.Schedule == nil {
		return fmt.Sprintf("%s: as many %s as %d operations at once can make %s", r.Name, what, r.Parallelism, until)
	}
	return fmt.Sprintf("%s: %s per second %s", r.Name, what, until)
}

// sizes returns the number and the bytes of an action's volumes by StorageClass, each
// volume counted a number of times.
func (n *info) sizes(times int64) map[string]ClassBudget {
	classes := map[string]ClassBudget{}
	for i := range n.claims {
		c := &n.claims[i]
		of := classes[className(c)]
		of.Volumes = plus(of.Volumes, times)
		of.Bytes = plus(of.Bytes, mul(times, c.Spec.Resources.Requests.Storage().Value()))
		classes[className(c)] = of
	}
	return classes
}

// mul returns a*b, or math.MaxInt64 on overflow. Neither may be negative.
func mul(a, b int64) int64 {
	if a != 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// plus returns a+b, or math.MaxInt64 on overflow. Neither may be negative.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
