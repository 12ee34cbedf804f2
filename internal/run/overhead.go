package run

import (
	"fmt"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// overheadWindow is the time over which the cost of samples is taken.
const overheadWindow = op.Time(5 * time.Second)

// overhead decides when a run reads less of its workloads.
type overhead struct {
	max   float64        // share of a CPU
	least op.SampleLevel // never below it

	mu    sync.Mutex
	level op.SampleLevel
	spent map[string]int64 // CPU time by instance, at its last sample
	from  op.Time          // start of the window
	sum   int64            // CPU time in the window
}

// add adds a sample. It returns the step that follows: at the end of a window in which samples took more than allowed.
// Samples of a level before do not count.
func (o *overhead) add(s op.Sample) (step bundle.SamplingStep, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last, known := o.spent[s.Instance]
	o.spent[s.Instance] = s.SamplerNanos
	if s.Level != o.level || o.level == o.least {
		return step, false
	}
	if !o.from.Known() {
		o.from = s.At
	}
	if known {
		o.sum += max(0, s.SamplerNanos-last)
	}
	long := s.At - o.from
	if long < overheadWindow {
		return step, false
	}
	share := float64(o.sum) / float64(long)
	o.from, o.sum = s.At, 0
	below, lower := o.level.Below()
	if share <= o.max || !lower {
		return step, false
	}
	o.level, o.from = below, op.Never
	return bundle.SamplingStep{At: s.At, Level: below, Overhead: share}, true
}

// limitOverhead reads less from now on if sampling takes more than the plan allows.
func (r *runner) limitOverhead(s op.Sample) {
	if r.overhead == nil {
		return
	}
	step, ok := r.overhead.add(s)
	if !ok {
		return
	}
	r.Engine.(engine.SampleLeveler).SetSampleLevel(step.Level)
	r.flags.Lock()
	r.result.Samplings = append(r.result.Samplings, step)
	r.flags.Unlock()
	r.warn("samplingReduced", fmt.Sprintf("at %v: sampling took %.2g %% of a CPU, more than spec.metrics.maxOverhead "+
		"(%.2g %%): from then on its level is %s", round(step.At), 100*step.Overhead, 100*r.overhead.max, step.Level))
}

// newOverhead returns nil if there is no limit, or the engine cannot keep one.
func (r *runner) newOverhead() *overhead {
	if _, can := r.Engine.(engine.SampleLeveler); !can || r.Plan.Metrics.MaxOverhead == 0 {
		return nil
	}
	return &overhead{max: r.Plan.Metrics.MaxOverhead, least: r.Plan.LeastLevel(), level: r.Plan.Metrics.Level,
		spent: map[string]int64{}, from: op.Never}
}
