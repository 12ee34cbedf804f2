package capacity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/schedule"
	"github.com/cnsbench/cnsbench/internal/stats/search"
)

// Carry runs a stage.
type Carry func(ctx, hard context.Context, s *model.Stage) *loadgen.StageResult

// Finder searches the highest rate of a stage's work at which a condition holds.
type Finder struct {
	Stage     string // that is repeated
	Condition *Condition
	Search    search.Search
	// LeastGiven: Search.Least was given. Else Check raises it until windows have enough operations.
	LeastGiven bool
	// Window is how long each step is measured, after WarmUp.
	Window, WarmUp time.Duration
	// Tell receives lines about the steps; nil: no output.
	Tell func(line string)
	// Ended is called for each step except the last, which Carry returns.
	Ended func(*loadgen.StageResult)
	// Keep is called after each step with what is known, as of an interrupted search; nil: it is not kept.
	Keep func(Maximum)

	result Maximum
}

// Maximum is what a search came to.
type Maximum struct {
	Stage     string         `json:"stage"`
	Condition string         `json:"condition"`
	Verdict   search.Verdict `json:"verdict"`
	// PerSecond is the highest rate at which the condition held, and Above the lowest at which it did not; nil
	// without one.
	PerSecond *float64 `json:"perSecond"`
	Above     *float64 `json:"above"`
	// Resolution is the width of that bracket, as a share of its lower end.
	Resolution *float64 `json:"resolution"`
	// Bound is what limited it at Above (or at all), with the evidence.
	Bound    loadgen.Bound `json:"bound,omitempty"`
	Evidence string        `json:"evidence,omitempty"`
	Message  string        `json:"message,omitempty"`
	Steps    []Step        `json:"steps"`
}

// Step is one window.
type Step struct {
	Stage     string             `json:"stage"` // as the bundle calls it
	PerSecond float64            `json:"perSecond"`
	Offered   float64            `json:"offeredPerSecond"` // what was due in the window
	Achieved  float64            `json:"achievedPerSecond"`
	Window    time.Duration      `json:"windowNs"`
	Held      bool               `json:"held"`
	Undecided bool               `json:"undecided,omitempty"` // it said neither
	Observed  []expr.Observation `json:"observed"`
	Bound     loadgen.Bound      `json:"bound"`
	Evidence  string             `json:"evidence"`
}

// WorkerBound is where operations waited for a free worker, and had they not,
// the condition would have held.
const WorkerBound loadgen.Bound = "worker-bound"

// Result of the search; nil before.
func (f *Finder) Result() *Maximum {
	if f.result.Verdict == "" {
		return nil
	}
	return &f.result
}

// target is the work whose rate is varied: the only normal one.
func target(s *model.Stage) (*model.Work, error) {
	var found *model.Work
	for i := range s.Works {
		if w := &s.Works[i]; w.Kind == model.Normal {
			if found != nil {
				return nil, fmt.Errorf("stage %s has several works: the search needs exactly one", s.Name)
			}
			found = w
		}
	}
	if found == nil {
		return nil, fmt.Errorf("stage %s has no work of type normal", s.Name)
	}
	return found, nil
}

// Target is the stage to repeat: the one of that name, or, without a name, the only one with works of type normal.
func Target(w *model.Workload, name string) (*model.Stage, error) {
	var found *model.Stage
	for i := range w.Stages {
		s := &w.Stages[i]
		if name != "" && s.Name == name {
			_, err := target(s)
			return s, err
		}
		if _, err := target(s); err == nil && name == "" {
			if found != nil {
				return nil, fmt.Errorf("stages %s and %s have work of type normal: choose one", found.Name, s.Name)
			}
			found = s
		}
	}
	switch {
	case name != "":
		return nil, fmt.Errorf("unknown stage %q", name)
	case found == nil:
		return nil, errors.New("no stage has exactly one work of type normal")
	}
	return found, nil
}

// Check validates the search before anything is sent.
func (f *Finder) Check(w *model.Workload) error {
	s, err := Target(w, f.Stage)
	if err != nil {
		return err
	}
	if f.Window <= 0 || f.WarmUp < 0 {
		return errors.New("the window of a step has no length")
	}
	f.Stage = s.Name
	work, _ := target(s) // Target found it
	if b, ok := work.Rate.(schedule.Burst); ok {
		s := &f.Search // a step has one burst at least
		s.Least = max(s.Least, float64(b.Size)/(search.Longest*f.Window.Seconds()))
		s.From = max(s.From, s.Least)
	}
	if err := f.Search.Check(); err != nil {
		return err
	}
	return f.needValues(work)
}

// needValues makes sure that at each rate the longest window is expected to have as many operations as the quantiles
// need: it raises the least rate, or refuses it if it was given.
func (f *Finder) needValues(w *model.Work) error {
	s, window := &f.Search, search.Longest*f.Window.Seconds() // the longest
	for i := range w.Ops {
		o := &w.Ops[i]
		n, share := search.Enough(f.Condition.Needs()[o.Name]), float64(o.Weight)/100
		least := search.RoundUp(n / (share * window))
		if f.Condition.Needs()[o.Name] == 0 || share == 0 || least <= s.Least {
			continue
		}
		if !f.LeastGiven && least <= s.Most {
			s.Least, s.From = least, max(s.From, least)
			continue
		}
		too, flag := s.Least, "--find-least"
		if least > s.Most {
			too, flag = s.Most, "--find-most"
		}
		wanted := time.Duration(math.Ceil(f.Window.Seconds()*n/(too*share*window)*10)) * time.Second / 10
		return fmt.Errorf("at %s a second a step has too few of %s to tell: in the longest window, %v, %.0f are "+
			"expected, and the condition takes %.0f; give %s %s or more, or --window %v",
			figure(too), o.Name, time.Duration(window*float64(time.Second)), too*share*window, math.Ceil(n), flag,
			figure(least), wanted)
	}
	return nil
}

// Around runs stages by inner, and repeats the searched one. A step that fails the condition does not fail the run.
func (f *Finder) Around(inner Carry) Carry {
	return func(ctx, hard context.Context, s *model.Stage) *loadgen.StageResult {
		if s.Name != f.Stage {
			return inner(ctx, hard, s)
		}
		return f.search(ctx, hard, s, inner)
	}
}

func (f *Finder) search(ctx, hard context.Context, s *model.Stage, inner Carry) (last *loadgen.StageResult) {
	f.result = Maximum{Stage: s.Name, Condition: f.Condition.Text, Steps: []Step{}}
	worst := map[float64]*Step{} // of those at a rate in which it did not hold, the last
	for n := 1; ; n++ {
		perSecond, verdict := f.Search.Next()
		if verdict != "" {
			f.conclude(verdict, worst)
			return last
		}
		if last != nil {
			f.Ended(last)
		}
		stage, window := f.step(s, n, perSecond)
		last = inner(ctx, hard, stage)
		if last.Err != nil || ctx.Err() != nil {
			f.result.Message = whyEnded(ctx, last.Err)
			f.conclude(search.Interrupted, worst)
			return last
		}
		step, v, err := f.judge(last, perSecond, window)
		if err != nil {
			last.Err = err
			return last
		}
		f.result.Steps = append(f.result.Steps, step)
		f.keep()
		f.tell(&step)
		if step.Undecided {
			f.result.Message = fmt.Sprintf("at %s a second the window did not say: %s", figure(perSecond), v.Message)
			f.conclude(search.Undecided, worst)
			return last
		}
		if !step.Held {
			worst[perSecond] = &step
		}
		f.Search.Add(perSecond, step.Held)
	}
}

// keep has the steps kept until now, so that a run that is killed has its table.
func (f *Finder) keep() {
	if f.Keep == nil {
		return
	}
	m := f.result
	m.Verdict, m.Message = search.Interrupted, "the run was killed; these are the steps until then"
	f.Keep(m)
}

// whyEnded is why a search ended without a result.
func whyEnded(ctx context.Context, err error) string {
	const asked = "the run was asked to end"
	cause := context.Cause(ctx)
	switch {
	case cause == nil:
		return err.Error()
	case !errors.Is(cause, context.Canceled):
		return errors.Join(err, cause).Error()
	case err == nil || errors.Is(err, context.Canceled):
		return asked
	}
	return fmt.Sprintf("%s; %v", asked, err)
}

// Once is w with the searched stage as one step at a rate, and the duration of that step, for budgets. Call Check
// before.
func (f *Finder) Once(w *model.Workload, perSecond float64) (*model.Workload, time.Duration) {
	once, took := *w, time.Duration(0)
	once.Stages = slices.Clone(w.Stages)
	for i := range once.Stages {
		if s := &once.Stages[i]; s.Name == f.Stage {
			step, _ := f.step(s, 1, perSecond)
			work, _ := target(s)
			again, _ := target(step)
			_, _, took = again.Windows()
			step.Name, again.Name = s.Name, work.Name
			once.Stages[i] = *step
		}
	}
	return &once, took
}

// step is the n-th stage, at a rate: an open loop with a warm-up and a window that is long enough for the quantiles.
func (f *Finder) step(s *model.Stage, n int, perSecond float64) (*model.Stage, time.Duration) {
	step := rename(s, fmt.Sprintf("%s.find%02d", s.Name, n))
	w, _ := target(step) // Check found it
	window := f.Window
	for _, o := range w.Ops {
		if need := f.Condition.Needs()[o.Name]; need > 0 && o.Weight > 0 {
			least := search.Enough(need) / (perSecond * float64(o.Weight) / 100)
			window = max(window, time.Duration(min(least, search.Longest*f.Window.Seconds())*float64(time.Second)))
		}
	}
	w.Rate, w.RateText = atRate(w.Rate, perSecond)
	if b, ok := w.Rate.(schedule.Burst); ok { // whole seconds, so that the window has exactly the rate's operations
		window = (window + b.Interval - 1) / b.Interval * b.Interval
	}
	w.RampUp, w.Runtime, w.TotalOps, w.TotalBytes, w.MaxFailures = f.WarmUp, window, 0, 0, 1_000_000
	return step, window
}

// atRate is the schedule s, Poisson's if there is none, at another rate.
func atRate(s schedule.Schedule, perSecond float64) (schedule.Schedule, string) {
	switch s := s.(type) {
	case schedule.Constant:
		return schedule.Constant{Rate: perSecond}, fmt.Sprintf("constant(%g)", perSecond)
	case schedule.Burst: // of the same size, more or less often
		s.Interval = max(1, time.Duration(float64(s.Size)/perSecond*float64(time.Second)))
		return s, fmt.Sprintf("burst(%d,%v)", s.Size, s.Interval)
	}
	return schedule.Poisson{Rate: perSecond}, fmt.Sprintf("poisson(%g)", perSecond)
}

// rename is a stage with works of its own, whose work of the same name is
// renamed with it.
func rename(s *model.Stage, name string) *model.Stage {
	step := *s
	step.Name, step.Works = name, append([]model.Work(nil), s.Works...)
	for i := range step.Works {
		if step.Works[i].Name == s.Name {
			step.Works[i].Name = name
		}
	}
	return &step
}

func (f *Finder) judge(r *loadgen.StageResult, perSecond float64, window time.Duration) (Step, expr.Verdict, error) {
	v, err := f.Condition.Judge(r)
	if err != nil {
		return Step{}, v, err
	}
	step := Step{Stage: r.Name, PerSecond: perSecond, Window: window, Held: v.Status == expr.Pass,
		Undecided: v.Status != expr.Pass && v.Status != expr.Fail,
		Observed:  v.Observed}
	for i := range r.Works {
		if r.Works[i].Work.Kind != model.Normal {
			continue
		}
		figures, err := r.Works[i].Figures()
		if err != nil {
			return Step{}, v, err
		}
		for k := range figures {
			g := &figures[k]
			step.Offered += float64(g.OK+g.Failed+g.Lost) / window.Seconds()
			step.Achieved += float64(g.OK) / window.Seconds()
		}
	}
	if step.Undecided {
		return step, v, nil // nothing kept it from holding
	}
	step.Bound, step.Evidence = r.Bound()
	if !step.Held && step.Bound != loadgen.ClientBound {
		workers := 0
		for i := range r.Works {
			workers += r.Works[i].Work.Workers
		}
		if step.Bound = loadgen.ServerBound; f.Condition.HeldByService(r) {
			step.Bound = WorkerBound
			step.Evidence = fmt.Sprintf("operations that were due waited for one of %d workers to be free, and "+
				"had they not, it would have held; %s", workers, step.Evidence)
		}
	}
	return step, v, nil
}

func (f *Finder) tell(s *Step) {
	if f.Tell == nil {
		return
	}
	word := "does not hold"
	switch {
	case s.Undecided:
		word = "undecided"
	case s.Held:
		word = "holds"
	}
	f.Tell(fmt.Sprintf("%s: %s a second: %s: %s", s.Stage, figure(s.PerSecond), word, said(s)))
}

func said(s *Step) string {
	text := ""
	for i, o := range s.Observed {
		if i > 0 {
			text += ", "
		}
		text += o.String()
	}
	return text
}

// conclude writes down what the search came to.
func (f *Finder) conclude(v search.Verdict, worst map[float64]*Step) {
	r := &f.result
	r.Verdict = v
	low, high := f.Search.Bracket()
	if low > 0 {
		r.PerSecond = &low
	}
	if math.IsInf(high, 1) {
		return
	}
	r.Above = &high
	if low > 0 {
		width := high/low - 1
		r.Resolution = &width
	}
	if step := worst[high]; step != nil {
		r.Bound, r.Evidence = step.Bound, step.Evidence
	}
}

// figure is a rate for people, to four digits.
func figure(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// Own reports whether the client limits the result, not the store.
func (m *Maximum) Own() bool { return m.Bound == loadgen.ClientBound || m.Bound == WorkerBound }
