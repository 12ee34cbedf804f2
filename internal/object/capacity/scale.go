package capacity

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/stats/knee"
)

// Scale repeats a stage with numbers of workers that go up.
type Scale struct {
	Stage       string
	Workers     []int
	Repetitions int
	// Window and WarmUp are in place of the work's own, if they are not 0.
	Window, WarmUp time.Duration
	// Threshold is the gain for each doubling below which throughput has stopped
	// to grow, as a share.
	Threshold float64

	steps []scaleStep
}

type scaleStep struct {
	stage               string
	workers, repetition int
}

// Expand is w with the stage repeated, in blocks that each have every number of workers once, in random order, so
// that drift affects all alike.
func (s *Scale) Expand(w *model.Workload, seed uint64) (*model.Workload, error) {
	stage, err := Target(w, s.Stage)
	if err != nil {
		return nil, err
	}
	if err := s.check(stage); err != nil {
		return nil, err
	}
	s.Stage, s.steps = stage.Name, nil
	expanded := *w
	expanded.Stages = nil
	rng := rand.New(rand.NewPCG(seed, 0x7363616c65))
	for i := range w.Stages {
		if &w.Stages[i] != stage {
			expanded.Stages = append(expanded.Stages, w.Stages[i])
			continue
		}
		for r := range s.Repetitions {
			for _, k := range rng.Perm(len(s.Workers)) {
				expanded.Stages = append(expanded.Stages, *s.step(stage, s.Workers[k], r+1))
			}
		}
	}
	for _, problem := range model.Check(&expanded, model.COSBench, backend.Traits) {
		if !problem.Warning {
			return nil, errors.New(problem.String())
		}
	}
	return &expanded, nil
}

func (s *Scale) check(stage *model.Stage) error {
	w, err := target(stage)
	if err != nil {
		return err
	}
	sorted := slices.Sorted(slices.Values(s.Workers))
	switch {
	case w.Rate != nil:
		return fmt.Errorf("stage %s has a rate: only closed loops scale with workers", stage.Name)
	case len(sorted) > 0 && sorted[0] < 1:
		return fmt.Errorf("invalid number of workers %d: want at least 1", sorted[0])
	case len(slices.Compact(slices.Clone(sorted))) < len(sorted):
		return fmt.Errorf("invalid numbers of workers %v: want each only once", s.Workers)
	case len(sorted) < 2:
		return fmt.Errorf("invalid numbers of workers %v: want at least two", s.Workers)
	case s.Repetitions < 1:
		return fmt.Errorf("invalid number of repetitions %d", s.Repetitions)
	case len(sorted)*s.Repetitions > 10_000:
		return fmt.Errorf("%d stages are too many", len(sorted)*s.Repetitions)
	}
	return nil
}

func (s *Scale) step(stage *model.Stage, workers, repetition int) *model.Stage {
	step := rename(stage, fmt.Sprintf("%s.w%d.r%d", stage.Name, workers, repetition))
	step.Scale, step.Repetitions = nil, 0
	w, _ := target(step) // check found it
	w.Workers = workers
	if s.Window > 0 {
		w.Runtime, w.TotalOps, w.TotalBytes = s.Window, 0, 0
	}
	if s.WarmUp > 0 {
		w.RampUp = s.WarmUp
	}
	s.steps = append(s.steps, scaleStep{step.Name, workers, repetition})
	return step
}

// Scaling is how a stage scales with its workers.
type Scaling struct {
	Stage string     `json:"stage"`
	Knee  *knee.Knee `json:"knee"`
	Rows  []Row      `json:"rows"` // from the fewest workers up
}

// Row is one number of workers; its histogram is of all repetitions together.
type Row struct {
	Workers   int             `json:"workers"`
	PerSecond []float64       `json:"perSecond"` // of each repetition that there is
	Failed    int64           `json:"failed"`
	Response  *hist.Histogram `json:"response"`
	// ClientBound are the repetitions whose figures are the client's own.
	ClientBound int `json:"clientBound"`
}

// Gather is how the stage scaled, from the results of the steps.
func (s *Scale) Gather(r *loadgen.Result) (*Scaling, error) {
	found := &Scaling{Stage: s.Stage}
	for _, workers := range slices.Sorted(slices.Values(s.Workers)) {
		row := Row{Workers: workers, Response: hist.New()}
		for _, step := range s.steps {
			if step.workers != workers {
				continue
			}
			i := slices.IndexFunc(r.Stages, func(r loadgen.StageResult) bool { return r.Name == step.stage })
			if i < 0 || r.Stages[i].Skipped || r.Stages[i].Err != nil {
				continue
			}
			if err := row.add(&r.Stages[i]); err != nil {
				return nil, err
			}
		}
		if len(row.PerSecond) > 0 {
			found.Rows = append(found.Rows, row)
		}
	}
	var levels []knee.Level
	for _, row := range found.Rows {
		levels = append(levels, knee.Level{Workers: row.Workers, PerSecond: row.PerSecond})
	}
	var err error
	found.Knee, err = knee.Find(levels, s.Threshold)
	return found, err
}

func (r *Row) add(s *loadgen.StageResult) error {
	r.PerSecond = append(r.PerSecond, s.PerSecond())
	if b, _ := s.Bound(); b == loadgen.ClientBound {
		r.ClientBound++
	}
	for i := range s.Works {
		figures, err := s.Works[i].Figures()
		if err != nil {
			return err
		}
		for k := range figures {
			r.Failed += figures[k].Failed + figures[k].Lost
			if err := r.Response.Merge(figures[k].Cell.Response); err != nil {
				return err
			}
		}
	}
	return nil
}
