package dataset

import (
	"encoding/json"
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Spec has the fields of the Benchmark that the analyses use.
type Spec struct {
	Actions []Action `json:"actions"`
	Rates   []Rate   `json:"rates"`
	SLOs    []struct {
		Name      string `json:"name"`
		Expr      string `json:"expr"`
		FewValues bool   `json:"fewValues"`
	} `json:"slos"`
	Metrics struct {
		Prometheus struct {
			Queries map[string]string `json:"queries"`
		} `json:"prometheus"`
	} `json:"metrics"`
}

// Start has what an action or a rate waits for.
type Start struct {
	StartAfter       string `json:"startAfter"`
	StartAfterAction string `json:"startAfterAction"`
}

// Action of the file.
type Action struct {
	Name          string     `json:"name"`
	Kind          op.Kind    `json:"-"`
	RateName      string     `json:"rateName"`
	Then          []string   `json:"then"`
	CreateObjSpec *CreateObj `json:"createObjSpec"`
	Start
}

// UnmarshalJSON also sets Kind from the name of the action's spec field.
func (a *Action) UnmarshalJSON(b []byte) error {
	type plain Action
	if err := json.Unmarshal(b, (*plain)(a)); err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	for name := range fields {
		if kind, ok := strings.CutSuffix(name, "Spec"); ok {
			a.Kind = op.Kind(strings.TrimSuffix(kind, "Obj")) // createObjSpec
		}
	}
	return nil
}

// Rate of the file, with the fields that determine its first trigger.
type Rate struct {
	Name         string    `json:"name"`
	ConstantRate *Interval `json:"constantRateSpec"`
	BurstRate    *Interval `json:"burstRateSpec"`
	Concurrency  *struct{} `json:"concurrencySpec"`
	Start
}

// Interval between the triggers of a rate; empty: the file gives a frequency.
type Interval struct {
	Interval string `json:"interval"`
}

// CreateObj describes what an action creates.
type CreateObj struct {
	Workload string  `json:"workload"`
	Phases   []Phase `json:"phases"`
	// ObjectSpec of an object workload; FileSpec: objects are files on a volume of the
	// instance.
	ObjectSpec *struct {
		Storage struct {
			FileSpec *struct{} `json:"fileSpec"`
		} `json:"storage"`
		Stages []struct {
			Name  string `json:"name"`
			Works []struct {
				Name string `json:"name"`
				Type string `json:"type"`
			} `json:"works"`
		} `json:"stages"`
	} `json:"objectSpec"`
}

// Phase of the file: its start and the variables that change then. Phase 0, before the
// first, is not in the file.
type Phase struct {
	StartAfter string            `json:"startAfter"`
	Vars       map[string]string `json:"vars"`
}

// Creates returns what an action creates; nil: nothing.
func (d *Data) Creates(action string) *CreateObj {
	for _, a := range d.Spec.Actions {
		if a.Name == action {
			return a.CreateObjSpec
		}
	}
	return nil
}

// Phases returns the phases of a workload in the file; none: it does not change.
func (d *Data) Phases(action string) []Phase {
	if c := d.Creates(action); c != nil {
		return c.Phases
	}
	return nil
}
