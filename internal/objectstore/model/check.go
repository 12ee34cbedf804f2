package model

import (
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/objectstore/pick"
)

// Limits of what is taken for meant.
const (
	maxWorkers    = 100_000
	maxContainers = 100_000 // each is looked at before a stage, for our marker
	maxRuntime    = 365 * 24 * time.Hour
	largestObject = int64(5) << 40 // of S3
)

// Check finds what is wrong with a workload whose text was understood: what
// contradicts itself, never ends or cannot be meant.
func Check(w *Workload) Problems {
	var ps Problems
	if len(w.Stages) == 0 {
		ps.Fail(0, "add a workstage", "the workload has no stages")
	}
	for i := range w.Stages {
		s := &w.Stages[i]
		if len(s.Works) == 0 {
			ps.Fail(s.Line, "add a work", "stage %q has no works", s.Name)
		}
		names := map[string]bool{}
		for j := range s.Works {
			work := &s.Works[j]
			if names[work.Name] {
				ps.Fail(work.Line, "give each work a name", "stage %q has two works %q", s.Name, work.Name)
			}
			names[work.Name] = true
			ps.work(s, work)
		}
	}
	ps.Sort()
	return ps
}

func (ps *Problems) work(s *Stage, w *Work) {
	if w.Kind == Delay {
		if s.Closure == 0 {
			ps.Warn(w.Line, "say how long by closuredelay", "stage %q delays by nothing", s.Name)
		}
		return
	}
	switch {
	case w.Workers < 1:
		ps.Fail(w.Line, `say how many: workers="8"`, "work %q has no workers", w.Name)
		return
	case w.Workers > maxWorkers:
		ps.Fail(w.Line, fmt.Sprintf("at most %d", maxWorkers), "%d workers cannot be meant", w.Workers)
		return
	case w.Runtime > maxRuntime || w.RampUp > maxRuntime || w.RampDown > maxRuntime:
		ps.Fail(w.Line, "at most a year", "that long cannot be meant")
	case len(w.Ops) == 0:
		ps.Fail(w.Line, "add an operation", "work %q has no operations", w.Name)
		return
	}
	if w.Kind == Normal {
		ps.normal(w)
	}
	for i := range w.Ops {
		ps.op(w, &w.Ops[i])
	}
	ps.checked(s, w)
}

func (ps *Problems) normal(w *Work) {
	if w.Runtime == 0 && w.TotalOps == 0 && w.TotalBytes == 0 {
		ps.Fail(w.Line, "give runtime, totalOps or totalBytes", "work %q never ends", w.Name)
	}
	if w.Runtime == 0 && (w.RampUp > 0 || w.RampDown > 0) {
		ps.Warn(w.Line, "give a runtime", "work %q has ramps around no runtime: rampdown has no meaning, and what ends within rampup is not measured", w.Name)
	}
	sum, moves := 0, false
	for _, o := range w.Ops {
		sum += o.Weight
		moves = moves || o.Weight > 0 && (o.Type == Read || o.Type == Write || o.Type == MultipartWrite || o.Type == FileWrite)
	}
	if sum != 100 {
		ps.Fail(w.Ops[0].Line, "let them add up to 100", "the ratios of work %q add up to %d", w.Name, sum)
	}
	if w.Runtime == 0 && w.TotalOps == 0 && w.TotalBytes > 0 && !moves {
		ps.Fail(w.Line, "give a runtime or totalOps", "work %q never ends: none of its operations moves bytes", w.Name)
	}
}

func (ps *Problems) op(w *Work, o *Op) {
	if n := o.Containers.Size(); n > maxContainers {
		ps.Fail(o.Line, fmt.Sprintf("at most %d", maxContainers), "%d containers cannot be meant", n)
	}
	if o.Sizes.Unit > 0 && o.Sizes.Max() > largestObject {
		ps.Fail(o.Line, "at most 5 TiB", "an object of %d bytes is larger than any store takes", o.Sizes.Max())
	}
	if o.Type == MultipartWrite && o.Sizes.Max() > 10000*o.PartSize {
		ps.Fail(o.Line, "make partsize larger", "%d bytes in parts of %d are more than 10000 parts", o.Sizes.Max(), o.PartSize)
	}
	if w.Special() {
		for _, s := range []pick.Spec{o.Containers, o.Objects} {
			if s.Kind != 0 && s.Kind != pick.Range && s.Kind != pick.Constant && s.Kind != pick.Sequential {
				ps.Warn(o.Line, "write it as r(a,b)", "%s goes once through all numbers from %d to %d, not by a distribution", w.Kind, s.Low, s.High)
			}
		}
		return
	}
	ps.divided(w, o)
}

// divided says which workers have nothing to do, and what cannot be divided.
func (ps *Problems) divided(w *Work, o *Op) {
	s := o.Containers
	switch o.Division {
	case ByNone:
		return
	case ByObject:
		s = o.Objects
	}
	if s.Kind == 0 {
		return
	}
	if !s.Divisible() {
		ps.Warn(o.Line, "", "a selector by histogram or s(a,b) cannot be divided by %s: all workers share it", o.Division)
	} else if s.Size() < int64(w.Workers) {
		ps.Warn(o.Line, "use fewer workers or a wider range", "divided by %s, %d of %d workers have nothing to %s", o.Division, int64(w.Workers)-s.Size(), w.Workers, o.Type)
	}
}
