package web

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Update is one event of a live run: its state, and what is new since the event before.
type Update struct {
	Status Status `json:"status"`
	// Points are seconds of the run, in order; Omitted is the number of earlier ones that are no longer kept.
	Points  []Point  `json:"points"`
	Omitted int      `json:"omitted"`
	Ops     []LiveOp `json:"ops"`
}

// Status is the state of a live run. Times are seconds since the run's start.
type Status struct {
	Name    string    `json:"name"`
	RunID   string    `json:"runID"`
	Engine  string    `json:"engine"`
	Started time.Time `json:"started"`
	Phase   string    `json:"phase" enum:"preparing,running,ending,ended"`
	At      float64   `json:"at"`
	// Barrier is when the measured work began; Runtime how long it lasts, and Left how long it still takes. RuntimeFrom
	// says where Runtime is from.
	Barrier     *float64 `json:"barrier,omitempty"`
	Runtime     *float64 `json:"runtime,omitempty"`
	Left        *float64 `json:"left,omitempty"`
	RuntimeFrom string   `json:"runtimeFrom,omitempty"`
	// Instances have started, InstancesEnded of them have ended.
	Instances      int          `json:"instances"`
	InstancesEnded int          `json:"instancesEnded"`
	Actions        []LiveAction `json:"actions"`
	Hosts          []Host       `json:"hosts,omitempty"`
	Log            []string     `json:"log"` // the last lines
}

// LiveAction counts the operations of an action that have ended. Times are response times in seconds.
type LiveAction struct {
	Name     string             `json:"name"`
	Kind     op.Kind            `json:"kind"`
	N        int                `json:"n"`
	Outcomes map[op.Outcome]int `json:"outcomes"`
	Last     *float64           `json:"last,omitempty"`
	Max      *float64           `json:"max,omitempty"`
}

// Point is one second of a run.
type Point struct {
	At int `json:"at"`
	// Read and Write are bytes per second of the workloads' processes.
	Read  float64 `json:"read"`
	Write float64 `json:"write"`
	// CanaryP50 and CanaryMax are the response times, in seconds, of the canary I/Os that ended in the second.
	CanaryP50 *float64 `json:"canaryP50,omitempty"`
	CanaryMax *float64 `json:"canaryMax,omitempty"`
	// Ops has the longest response time of each action, in seconds, of the operations that ended in the second.
	Ops map[string]float64 `json:"ops,omitempty"`
}

// LiveOp is an operation that has ended.
type LiveOp struct {
	ID       int64      `json:"id"`
	Action   string     `json:"action"`
	Target   string     `json:"target"`
	Outcome  op.Outcome `json:"outcome"`
	Ended    *float64   `json:"ended,omitempty"`
	Response *float64   `json:"response,omitempty"`
	Message  string     `json:"message,omitempty"`

	point int // the first point that had not been sent when it came
}

const (
	// maxPoints and maxLiveOps bound what is kept of a live run. An event has at most maxLiveOps operations, of which the
	// page lists 14: more would be most of the event.
	maxPoints  = 3600
	maxLiveOps = 20
	maxLog     = 20
	// settle is the time after which a second is complete: samples come each second, and are of the time before.
	settle = 2
)

// live accumulates what a run writes.
type live struct {
	run     bundle.Run
	runtime time.Duration
	from    string
	newest  op.Time
	barrier op.Time
	points  []Point // settled
	omitted int
	next    int // the first second that is not settled
	open    map[int]*second
	last    map[string]op.Sample // by instance
	started map[string]bool
	ended   map[string]bool
	actions map[string]*LiveAction
	ops     []LiveOp
	log     []string
	places  placement
}

// second is what is known of a second that is not settled.
type second struct {
	read, write float64
	canary      []int64
	ops         map[string]float64
}

func newLive(r bundle.Run) *live {
	l := &live{run: r, newest: 0, barrier: op.Never, open: map[int]*second{}, last: map[string]op.Sample{},
		started: map[string]bool{}, ended: map[string]bool{}, actions: map[string]*LiveAction{},
		places: placement{nodes: map[string]string{}, ops: map[string]int{}}}
	l.runtime, l.from = runtimeOf(r.Plan)
	return l
}

// runtimeOf returns how long the measured part of a run lasts: the runtime of its file, else the longest variable
// "runtime", in seconds, of its workloads. 0: it is not known.
func runtimeOf(plan json.RawMessage) (time.Duration, string) {
	var facts struct {
		Runtime string                    `json:"runtime"`
		Vars    map[string]map[string]any `json:"vars"`
	}
	if json.Unmarshal(plan, &facts) != nil {
		return 0, ""
	}
	if d, err := time.ParseDuration(facts.Runtime); err == nil {
		return d, "the runtime of the file"
	}
	longest := 0.0
	for _, vars := range facts.Vars {
		text, _ := vars["runtime"].(string)
		if s, err := strconv.ParseFloat(text, 64); err == nil {
			longest = max(longest, s)
		}
	}
	return time.Duration(longest * float64(time.Second)), "the workloads' variable runtime"
}

// add takes the news of a bundle in.
func (l *live) add(n *bundle.News) {
	for i := range n.Ops {
		l.addOp(&n.Ops[i])
	}
	for _, s := range n.Samples {
		l.addSample(s)
	}
	for _, c := range n.Canary {
		for _, io := range c.IOs {
			if l.see(io.Ended) && io.Intended.Known() && io.Errno == 0 {
				at := l.second(io.Ended)
				at.canary = append(at.canary, int64(io.Ended-io.Intended))
			}
		}
	}
	for _, s := range n.Starts {
		l.started[s.Instance] = true
		if s.Intended.Known() && !l.barrier.Known() {
			l.barrier = s.Intended
		}
	}
	for _, e := range n.Ends {
		l.started[e.Instance], l.ended[e.Instance] = true, true
	}
	for _, line := range n.Log {
		l.log = append(l.log, line.Source+": "+line.Line)
	}
	l.log = l.log[max(0, len(l.log)-maxLog):]
	l.settle()
}

// see notes an instant of the data; false: it is not known.
func (l *live) see(at op.Time) bool {
	if at.Known() {
		l.newest = max(l.newest, at)
	}
	return at.Known()
}

// second returns the second of an instant, or a discarded one if that is settled.
func (l *live) second(at op.Time) *second {
	i := int(at / op.Time(time.Second))
	if i < l.next {
		return &second{ops: map[string]float64{}}
	}
	if l.open[i] == nil {
		l.open[i] = &second{ops: map[string]float64{}}
	}
	return l.open[i]
}

func (l *live) addOp(o *op.Op) {
	a := l.actions[o.Action]
	if a == nil {
		a = &LiveAction{Name: o.Action, Kind: o.Kind, Outcomes: map[op.Outcome]int{}}
		l.actions[o.Action] = a
	}
	a.N++
	a.Outcomes[o.Outcome]++
	l.places.addOp(o)
	one := LiveOp{ID: o.ID, Action: o.Action, Target: o.Target, Outcome: o.Outcome, Message: o.Message,
		point: l.omitted + len(l.points)}
	if l.see(o.Ended) {
		one.Ended = seconds(o.Ended)
	}
	if ns, ok := o.Response(); ok {
		one.Response = seconds(op.Time(ns))
		if o.Outcome == op.OK {
			a.Last = one.Response
			if a.Max == nil || *a.Max < *a.Last {
				a.Max = a.Last
			}
			at := l.second(o.Ended)
			at.ops[o.Action] = max(at.ops[o.Action], *one.Response)
		}
	}
	l.ops = append(l.ops, one)
	if len(l.ops) > 2*maxLiveOps {
		l.ops = slices.Clone(l.ops[len(l.ops)-maxLiveOps:])
	}
}

// addSample spreads what was read and written since the sample before over the seconds between them.
func (l *live) addSample(s op.Sample) {
	before, ok := l.last[s.Instance]
	if !l.see(s.At) {
		return
	}
	l.last[s.Instance] = s
	if !ok || s.At <= before.At || s.ReadBytes < before.ReadBytes || s.WriteBytes < before.WriteBytes {
		return // the first, or of new processes
	}
	whole := float64(s.At - before.At)
	for from := before.At; from < s.At; {
		to := min((from/op.Time(time.Second)+1)*op.Time(time.Second), s.At)
		share := float64(to-from) / whole
		at := l.second(from)
		at.read += share * float64(s.ReadBytes-before.ReadBytes)
		at.write += share * float64(s.WriteBytes-before.WriteBytes)
		from = to
	}
}

// settle makes points of the seconds that are complete.
func (l *live) settle() {
	for until := int(l.newest/op.Time(time.Second)) - settle; l.next < until; l.next++ {
		p := Point{At: l.next}
		if s := l.open[l.next]; s != nil {
			p.Read, p.Write, p.Ops = s.read, s.write, s.ops
			if n := len(s.canary); n > 0 {
				slices.Sort(s.canary)
				p.CanaryP50, p.CanaryMax = seconds(op.Time(s.canary[(n-1)/2])), seconds(op.Time(s.canary[n-1]))
			}
			delete(l.open, l.next)
		}
		l.points = append(l.points, p)
	}
	if more := len(l.points) - maxPoints; more > maxPoints/10 {
		l.points, l.omitted = slices.Clone(l.points[more:]), l.omitted+more
	}
}

// update returns the state and what is new since a number of points. Now is the time since the run's start.
func (l *live) update(since int, now time.Duration, ended bool) Update {
	s := Status{Name: l.run.Name, RunID: l.run.ID, Engine: l.run.Engine, Started: l.run.Clock.Start, Phase: "preparing",
		At: max(now.Seconds(), float64(l.newest)/1e9), Instances: len(l.started), InstancesEnded: len(l.ended),
		Actions: []LiveAction{}, Hosts: l.hosts(), Log: slices.Clone(l.log)}
	if l.barrier.Known() {
		s.Phase, s.Barrier = "running", seconds(l.barrier)
		if l.runtime > 0 {
			whole := l.runtime.Seconds()
			left := max(0, *s.Barrier+whole-s.At)
			s.Runtime, s.Left, s.RuntimeFrom = &whole, &left, l.from
		}
		if len(l.ended) == len(l.started) {
			s.Phase = "ending"
		}
	}
	if ended {
		s.Phase = "ended"
	}
	for _, name := range slices.Sorted(maps.Keys(l.actions)) {
		a := *l.actions[name]
		a.Outcomes = maps.Clone(a.Outcomes)
		s.Actions = append(s.Actions, a)
	}
	u := Update{Status: s, Points: slices.Clone(l.points[min(max(0, since-l.omitted), len(l.points)):]),
		Omitted: l.omitted, Ops: []LiveOp{}}
	for _, o := range l.ops[max(0, len(l.ops)-maxLiveOps):] {
		if o.point >= since {
			u.Ops = append(u.Ops, o)
		}
	}
	return u
}

func seconds(t op.Time) *float64 {
	s := float64(t) / 1e9
	return &s
}

// readWorkers reads the hosts of an object workload, once they are recorded.
func (l *live) readWorkers(dir string) {
	if !l.run.ObjectsOnly() || l.places.workers != nil {
		return
	}
	if e, err := (&bundle.Bundle{Dir: dir}).Environment(); err == nil { // none yet, or not whole
		l.places.workers = append([]string{}, e.Hosts()...)
	}
}

// hosts returns the hosts in order of their names. An instance is at none until the operation that starts it has ended,
// unless it is of a stand-alone object workload.
func (l *live) hosts() []Host {
	all := map[string]*Host{}
	at := func(name string) *Host {
		if all[name] == nil {
			all[name] = &Host{Name: name}
		}
		return all[name]
	}
	for name, n := range l.places.ops {
		at(name).Ops = n
	}
	for _, name := range l.places.workers {
		at(name)
	}
	for instance := range l.started {
		name, ok := l.places.of(instance)
		if !ok {
			continue
		}
		h := at(name)
		h.Instances++
		if l.ended[instance] {
			h.InstancesEnded++
		}
	}
	var list []Host
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[name])
	}
	return list
}
