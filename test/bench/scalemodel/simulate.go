package scalemodel

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// Prediction is what the simulation says of a run.
type Prediction struct {
	Achieved    float64 // moves per second that end within the run
	Dropped     float64
	ResponseP50 float64 // s, of moves that ended
	Used        float64 // CPUs of all components
}

// Predict simulates the run of a point, of which only the settings and the CPUs of Other are read. Moves come at random,
// and at most InFlight are in flight. Each waits for about Delay and then needs its work on the CPUs that Other and the
// idle cluster leave. A move uses one CPU at most; moves that work at the same time share the CPUs equally.
func (m *Model) Predict(p Point, seed uint64) Prediction {
	idle := 0.0
	for _, used := range m.Needs(p.Nodes, p.Instances, 0) {
		idle += used
	}
	cpus := max(0.01, m.Capacity-p.Cores[Other]-idle)
	rate, got := p.Offered, Prediction{}
	for range 5 { // a move at the rate that is achieved costs what it costs at that rate
		got = m.predict(p, cpus, m.Work(rate), rand.New(rand.NewPCG(seed, 0x7363616c65)))
		rate = max(got.Achieved, 0.01)
	}
	got.Used = min(m.Capacity, idle+got.Used)
	return got
}

// predict simulates moves of equal work on the CPUs that are left for them, of which Used is the part that they use.
func (m *Model) predict(p Point, cpus, work float64, random *rand.Rand) (got Prediction) {
	var responses []float64
	for range repetitions {
		s := simulation{work: work, delay: m.Delay, cpus: cpus, random: random}
		s.run(p.Offered, p.InFlight, p.Seconds)
		responses = append(responses, s.responses...)
		got.Dropped += float64(s.dropped) / repetitions
		got.Used += s.worked / repetitions / p.Seconds
	}
	got.Achieved = float64(len(responses)) / repetitions / p.Seconds
	if len(responses) > 0 {
		slices.Sort(responses)
		got.ResponseP50 = responses[(len(responses)-1)/2]
	}
	return got
}

// repetitions of a run, of which a prediction has the means: moves that have not ended when the run does are not
// counted, so a longer run is another one.
const repetitions = 20

// simulation is a queue in which all that work share the CPUs. All have the same work, so they end in the order in
// which they began: one needs to know how much work each of them has got since the start.
type simulation struct {
	work, delay, cpus float64
	random            *rand.Rand

	now, shared float64 // shared: work that one who was there all the time has got
	waiting     []move  // in order of the end of their delay
	working     []move  // in order of the end of their work
	dropped     int
	worked      float64
	responses   []float64 // of moves that ended
}

// move is one move: when it came, and when its wait ends, or at which shared its work.
type move struct{ came, until float64 }

func (s *simulation) run(perSecond float64, inFlight int, seconds float64) {
	next := s.random.ExpFloat64() / perSecond
	for {
		at, what := next, s.arrive
		if len(s.waiting) > 0 && s.waiting[0].until < at {
			at, what = s.waiting[0].until, s.begin
		}
		if end := s.nextEnd(); len(s.working) > 0 && end < at {
			at, what = end, s.end
		}
		if at > seconds {
			s.advance(seconds)
			return
		}
		s.advance(at)
		if at == next {
			next += s.random.ExpFloat64() / perSecond
			if len(s.waiting)+len(s.working) >= inFlight {
				s.dropped++
				continue
			}
		}
		what()
	}
}

// speed is the work per second of each that works.
func (s *simulation) speed() float64 { return min(1, s.cpus/float64(len(s.working))) }

func (s *simulation) nextEnd() float64 {
	if len(s.working) == 0 {
		return 0
	}
	return s.now + (s.working[0].until-s.shared)/s.speed()
}

func (s *simulation) advance(to float64) {
	if n := len(s.working); n > 0 {
		got := (to - s.now) * s.speed()
		s.shared += got
		s.worked += got * float64(n)
	}
	s.now = to
}

// arrive lets a move wait for its delay ± half of it: with equal delays, moves that come together would work together
// for ever, and leave the CPUs idle in between.
func (s *simulation) arrive() {
	m := move{s.now, s.now + s.delay*(0.5+s.random.Float64())}
	i, _ := slices.BinarySearchFunc(s.waiting, m, func(a, b move) int { return cmp.Compare(a.until, b.until) })
	s.waiting = slices.Insert(s.waiting, i, m)
}

func (s *simulation) begin() {
	s.working = append(s.working, move{s.waiting[0].came, s.shared + s.work})
	s.waiting = s.waiting[1:]
}

func (s *simulation) end() {
	s.responses = append(s.responses, s.now-s.working[0].came)
	s.working = s.working[1:]
}
