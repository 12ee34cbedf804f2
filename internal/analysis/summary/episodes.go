package summary

import (
	"maps"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/throughput"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Episode has the results of an action with the actions that follow each op of it.
type Episode struct {
	Name string `json:"name"` // of the action that begins it
	N    int64  `json:"n"`
	// Outcomes: ok if every step was, else that of the first step that was not.
	Outcomes map[op.Outcome]int64 `json:"outcomes"`
	// AchievedPerSecond is the throughput of those that were ok (package throughput); nil with fewer than two.
	AchievedPerSecond *float64 `json:"achievedPerSecond"`
	// Response is from the first op's intended instant to the last one's end; of an
	// episode that broke off a lower bound.
	Response Latency `json:"response"`
	Steps    []Step  `json:"steps"`
}

// OK is the number of completed episodes.
func (e Episode) OK() int64 { return e.Outcomes[op.OK] }

// Broken is the number of episodes that broke off.
func (e Episode) Broken() int64 { return e.N - e.OK() }

// Step is one action of an episode.
type Step struct {
	Action string `json:"action"`
	// Share of the time of the episodes that were ok, 0 to 1.
	Share float64 `json:"share"`
	// Latency from the end of the step before, or from the intended instant of the first.
	Latency Latency `json:"latency"`
	Broken  int64   `json:"broken"` // episodes that broke off here
}

// chain is one action with its followers.
type chain struct {
	name     string
	steps    []string
	response stats.Sample
	latency  []stats.Sample
	spent    []int64 // of episodes that were ok
	broken   []int64
	outcomes map[op.Outcome]int64
	n        int64
	done     []dataset.Span // that ended
}

// episode is an episode in progress. at is the end of its last step.
type episode struct {
	of           *chain
	intended, at op.Time
	started      op.Time
	ends         []op.Time
	outcome      op.Outcome // of the first step that was not ok
}

// chains collects the ops of episodes.
type chains struct {
	byHead map[string]*chain
	order  []*chain
	open   map[int64]*episode
	meters *throughput.Meters
}

func newChains(d *dataset.Data) *chains {
	cs := &chains{byHead: map[string]*chain{}, open: map[int64]*episode{}, meters: throughput.NewMeters(d)}
	for _, a := range d.Spec.Actions {
		if len(a.Then) == 0 {
			continue
		}
		n := 1 + len(a.Then)
		c := &chain{name: a.Name, steps: append([]string{a.Name}, a.Then...), latency: make([]stats.Sample, n),
			spent:  make([]int64, n),
			broken: make([]int64, n), outcomes: map[op.Outcome]int64{}}
		cs.byHead[a.Name] = c
		cs.order = append(cs.order, c)
	}
	return cs
}

// add adds an op; those of an episode are in order.
func (cs *chains) add(o *op.Op) {
	if len(cs.order) == 0 {
		return
	}
	cs.meters.Add(o)
	if c := cs.byHead[o.Action]; c != nil {
		cs.open[o.Episode] = &episode{of: c, intended: o.Intended, at: o.Intended, started: o.Started,
			ends: make([]op.Time, len(c.steps))}
	}
	if e := cs.open[o.Episode]; e != nil {
		e.add(o)
	}
}

func (cs *chains) list() []Episode {
	for _, id := range slices.Sorted(maps.Keys(cs.open)) {
		cs.open[id].close()
	}
	var list []Episode
	for _, c := range cs.order {
		e := c.episode()
		if v, ok := cs.meters.Of(c.name, c.done, int(e.OK())); ok {
			e.AchievedPerSecond = &v
		}
		list = append(list, e)
	}
	return list
}

// add adds an op of the episode; a step with several targets ends with the last.
func (e *episode) add(o *op.Op) {
	step := slices.Index(e.of.steps, o.Action)
	if step < 0 {
		return
	}
	if o.Ended.Known() {
		e.at = max(e.at, o.Ended)
	}
	if o.Outcome == op.OK {
		e.ends[step] = max(e.ends[step], o.Ended)
		return
	}
	if e.outcome == "" {
		e.outcome = o.Outcome
		e.of.broken[step]++
	}
}

// close adds the episode to its course.
func (e *episode) close() {
	c := e.of
	c.n++
	if e.outcome == "" && slices.Contains(e.ends, 0) {
		e.outcome = op.Censored // the record ends before the episode does
	}
	before := e.intended
	for i, end := range e.ends {
		if end == 0 {
			break
		}
		c.latency[i].Add(int64(end - before))
		if e.outcome == "" {
			c.spent[i] += int64(end - before)
		}
		before = end
	}
	switch {
	case e.outcome == "":
		e.outcome = op.OK
		c.response.Add(int64(before - e.intended))
	case e.outcome == op.Dropped && e.ends[0] == 0:
		c.response.AddInfinite(1)
	default:
		c.response.AddAtLeast(int64(e.at - e.intended))
	}
	if e.started.Known() && e.outcome != op.Censored {
		c.done = append(c.done, dataset.Span{From: e.started, To: e.at})
	}
	c.outcomes[e.outcome]++
}

func (c *chain) episode() Episode {
	out := Episode{Name: c.name, N: c.n, Outcomes: c.outcomes, Response: latencyOf(&c.response)}
	var all int64
	for _, ns := range c.spent {
		all += ns
	}
	for i, name := range c.steps {
		s := Step{Action: name, Latency: latencyOf(&c.latency[i]), Broken: c.broken[i]}
		if all > 0 {
			s.Share = float64(c.spent[i]) / float64(all)
		}
		out.Steps = append(out.Steps, s)
	}
	return out
}
