package dataset

import "encoding/json"

// Stage of a workload of objects, as the file or the plan has it.
type Stage struct {
	Name  string
	Works []Work
}

// Work of a stage.
type Work struct {
	Name, Kind string
	// RampUpNs is how long it goes on before it is measured, if that is known.
	RampUpNs int64
}

// Measured says whether a work is what a run is about, and does not only prepare
// or clear away.
func (w Work) Measured() bool { return w.Kind == "" || w.Kind == "normal" }

// Measured says so of a stage, if any of its works is.
func (s Stage) Measured() bool {
	for _, w := range s.Works {
		if w.Measured() {
			return true
		}
	}
	return len(s.Works) == 0
}

// Stages are those of an action's workload of objects, in order; of a run of
// object storage on its own those of its plan, whatever the action. None: it is no
// such workload, or nothing is known of them.
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
			return nil // such as none
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
