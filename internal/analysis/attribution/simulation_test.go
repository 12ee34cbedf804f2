package attribution

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// simulation makes ops that create a pod with a volume, by a queue for each component. Times without an injected cause
// are log-normal, with medians of unloaded runs on the test bed.
type simulation struct {
	random   *rand.Rand
	observed bool // a proxy sees the calls of the driver
	ops      []op.Op
	at       []time.Duration // how far each op is

	perSecond         float64       // of arrivals; 0: all at once
	attacherGap       time.Duration // between two requests of csi-attacher; 0: not limited
	provisioners      int           // workers
	createVolume      time.Duration // median
	scheduler, mkfs   time.Duration // median
	nodeFactor        float64       // how much longer steps of the node take
	busyFrom, busyFor time.Duration // of each 10 s
}

func newSimulation(seed uint64) *simulation {
	return &simulation{random: rand.New(rand.NewPCG(seed, 1)), observed: true, perSecond: 10, provisioners: 100,
		createVolume: 30 * time.Millisecond, scheduler: 20 * time.Millisecond, mkfs: 60 * time.Millisecond, nodeFactor: 1}
}

func (s *simulation) draw(median time.Duration) time.Duration {
	return time.Duration(float64(median) * math.Exp(0.4*s.random.NormFloat64()))
}

func (s *simulation) mark(i int, name string) {
	s.ops[i].Milestones = append(s.ops[i].Milestones, op.Milestone{Name: name, At: op.Time(s.at[i])})
}

// step takes a random time, and ends at a milestone.
func (s *simulation) step(i int, name string, median time.Duration) {
	s.at[i] += s.draw(median)
	s.mark(i, name)
}

// call is a call of the driver, which is seen if it is observed.
func (s *simulation) call(i int, rpc string, body func()) {
	if s.observed {
		s.mark(i, rpc+".start")
	}
	body()
	if s.observed {
		s.mark(i, rpc+".end")
	}
}

// serve serves the ops in order of their arrival, by a number of workers, with the least gap between two begins.
func (s *simulation) serve(workers int, gap time.Duration, body func(i int)) {
	free, next := make([]time.Duration, workers), time.Duration(0)
	order := make([]int, len(s.ops))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(s.at[a], s.at[b]) })
	for _, i := range order {
		worker := slices.Index(free, slices.Min(free))
		s.at[i] = max(s.at[i], free[worker], next)
		next = s.at[i] + gap
		body(i)
		free[worker] = s.at[i]
	}
}

// run makes n ops.
func (s *simulation) run(n int) []op.Op {
	s.ops, s.at = make([]op.Op, n), make([]time.Duration, n)
	var now time.Duration
	for i := range s.ops {
		if s.perSecond > 0 {
			now += time.Duration(s.random.ExpFloat64() / s.perSecond * float64(time.Second))
		}
		s.ops[i] = op.Op{ID: int64(i), Kind: op.Create, Outcome: op.OK, Intended: op.Time(now), Started: op.Time(now)}
		s.at[i] = now
		s.step(i, op.Acked, 10*time.Millisecond)
	}
	s.serve(s.provisioners, 0, func(i int) {
		s.at[i] += s.draw(5 * time.Millisecond)
		s.call(i, "CreateVolume", func() { s.at[i] += s.draw(s.createVolume) })
	})
	for i := range s.ops {
		s.step(i, op.Provisioned, 5*time.Millisecond)
		s.step(i, op.Bound, 30*time.Millisecond)
		s.step(i, op.Scheduled, s.scheduler)
	}
	for i := range s.ops {
		s.at[i] += s.draw(200 * time.Millisecond) // the attach controller
	}
	s.serve(100, s.attacherGap, func(i int) {
		s.at[i] += s.draw(5 * time.Millisecond)
		s.call(i, "ControllerPublishVolume", func() { s.at[i] += s.draw(20 * time.Millisecond) })
	})
	for i := range s.ops {
		s.step(i, op.Attached, 50*time.Millisecond)
		s.node(i)
		s.ops[i].Ended = op.Time(s.at[i])
	}
	return s.ops
}

// node is what the kubelet and the driver do on the op's node.
func (s *simulation) node(i int) {
	slowly := func(d time.Duration) time.Duration { return time.Duration(float64(d) * s.nodeFactor) }
	s.at[i] += s.draw(slowly(300 * time.Millisecond))
	s.call(i, "NodeStageVolume", func() {
		s.at[i] += s.draw(slowly(5 * time.Millisecond))
		s.call(i, op.PartMkfs, func() { s.at[i] += s.draw(slowly(s.mkfs)) })
		s.at[i] += s.draw(slowly(10 * time.Millisecond))
	})
	s.at[i] += s.draw(slowly(2 * time.Millisecond))
	s.call(i, "NodePublishVolume", func() { s.at[i] += s.draw(slowly(5 * time.Millisecond)) })
	s.step(i, op.Sandboxed, slowly(700*time.Millisecond))
	s.step(i, op.Running, slowly(400*time.Millisecond))
	s.step(i, op.FirstWrite, 10*time.Millisecond)
}

// machine is the node of all ops.
func (s *simulation) machine(*op.Op) *Machine {
	return &Machine{Who: "stress 1.9 of 2 CPUs", Busy: func(from, to op.Time) int64 {
		var busy op.Time
		for begin := op.Time(s.busyFrom); begin < to; begin += op.Time(10 * time.Second) {
			busy += max(0, min(to, begin+op.Time(s.busyFor))-max(from, begin))
		}
		return int64(busy)
	}}
}

// search searches the ops of a simulation.
func (s *simulation) search(seed uint64) *Search {
	found := &Search{Context: Context{MachineOf: s.machine, Seed: seed, Flags: map[string][]string{
		"csi-attacher": {"--kube-api-qps=5"}, "csi-provisioner": {"--worker-threads=1"}}}}
	for i := range s.ops {
		found.Add(&s.ops[i])
	}
	return found
}
