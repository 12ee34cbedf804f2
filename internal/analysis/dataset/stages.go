package dataset

import (
	"encoding/json"
	"slices"
)

// Stage of an object workload in the file or the plan.
type Stage struct {
	Name  string
	Works []Work
}

// Work of a stage.
type Work struct {
	Name, Kind string
	// RampUpNs is the time before it is measured, if known.
	RampUpNs int64
}

// Measured reports whether a work is measured, and not preparation or cleanup.
func (w Work) Measured() bool { return w.Kind == "" || w.Kind == "normal" }

// Measured reports whether any work of the stage is measured.
func (s Stage) Measured() bool {
	return len(s.Works) == 0 || slices.ContainsFunc(s.Works, Work.Measured)
}

// Stages returns the stages of an action's object workload in order; of an object
// storage run those of its plan, for any action. None: another workload, or unknown.
func (d *Data) Stages(action string) []Stage {
	var list []Stage
	if d.Bundle != nil && d.Bundle.Run.ObjectsOnly() {
		var plan struct {
			Stages []struct {
				Name  string
				Works []Work
			}
		}
		if json.Unmarshal(d.Bundle.Run.Plan, &plan) != nil {
			return nil
		}
		for _, s := range plan.Stages {
			list = append(list, Stage(s))
		}
		return list
	}
	c := d.Creates(action)
	if c == nil || c.ObjectSpec == nil {
		return nil
	}
	for _, s := range c.ObjectSpec.Stages {
		stage := Stage{Name: s.Name}
		for _, w := range s.Works {
			stage.Works = append(stage.Works, Work{Name: w.Name, Kind: w.Type})
		}
		list = append(list, stage)
	}
	return list
}
