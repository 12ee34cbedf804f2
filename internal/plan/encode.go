package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// A Plan is plain data. json.Marshal encodes all of it, and a decoded plan renders and
// schedules the same. Only Rate.Schedule, an interface, needs its own encoding.

// Record returns the plan in the form that a bundle stores. It omits manifests of
// Secrets, and the steps of traces: hashes identify the trace files.
func (p *Plan) Record() *Plan {
	kept := *p
	kept.Actions = slices.Clone(p.Actions)
	for i := range kept.Actions {
		a := &kept.Actions[i]
		if a.Workload != nil {
			w := *a.Workload
			w.Template = w.Template.WithoutSecrets()
			a.Workload = &w
		}
		if m := a.Manifest; m != nil && m.Template.Fields["kind"] == "Secret" {
			a.Manifest = &Manifest{Labels: m.Labels}
		}
	}
	kept.Rates = slices.Clone(p.Rates)
	for i := range kept.Rates {
		if r := &kept.Rates[i]; r.Trace != nil {
			r.Schedule, r.Steps, r.Before = nil, nil, nil
		}
	}
	kept.Benchmark, kept.Given = nil, nil // run.json has them
	return &kept
}

// encodedSchedule has one field for each type of Schedule.
type encodedSchedule struct {
	Constant *schedule.Constant `json:",omitempty"`
	Poisson  *schedule.Poisson  `json:",omitempty"`
	Burst    *schedule.Burst    `json:",omitempty"`
	Trace    *schedule.Trace    `json:",omitempty"`
	Formula  *v1alpha1.Rate     `json:",omitempty"` // only the field of the formula is set
}

type rateData Rate

// encodedRate replaces Rate.Schedule by a field with the same JSON name.
type encodedRate struct {
	*rateData
	Schedule *encodedSchedule `json:",omitempty"`
}

// MarshalJSON encodes the rate with its schedule.
func (r Rate) MarshalJSON() ([]byte, error) {
	out := encodedRate{rateData: (*rateData)(&r)}
	switch s := r.Schedule.(type) {
	case nil:
	case schedule.Constant:
		out.Schedule = &encodedSchedule{Constant: &s}
	case schedule.Poisson:
		out.Schedule = &encodedSchedule{Poisson: &s}
	case schedule.Burst:
		out.Schedule = &encodedSchedule{Burst: &s}
	case schedule.Trace:
		out.Schedule = &encodedSchedule{Trace: &s}
	case schedule.Closed:
		spec := &v1alpha1.Rate{}
		if !setFormula(spec, s.Formula) {
			return nil, fmt.Errorf("rate %s: no field of a rate has type %T", r.Name, s.Formula)
		}
		out.Schedule = &encodedSchedule{Formula: spec}
	default:
		return nil, fmt.Errorf("rate %s: cannot encode schedule %T", r.Name, s)
	}
	return json.Marshal(out)
}

// UnmarshalJSON decodes the output of MarshalJSON.
func (r *Rate) UnmarshalJSON(data []byte) error {
	in := encodedRate{rateData: (*rateData)(r)}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	s := in.Schedule
	switch {
	case s == nil:
		r.Schedule = nil
	case s.Constant != nil:
		r.Schedule = *s.Constant
	case s.Poisson != nil:
		r.Schedule = *s.Poisson
	case s.Burst != nil:
		r.Schedule = *s.Burst
	case s.Trace != nil:
		r.Schedule = *s.Trace
	default:
		f, _ := formulaOf(s.Formula)
		if f == nil {
			return fmt.Errorf("rate %s: unknown schedule", r.Name)
		}
		r.Schedule = schedule.Closed{Formula: f}
	}
	return nil
}

// formulaOf returns the Formula that a field of a rate holds, and the JSON name of the
// field. It returns nil if there is none.
func formulaOf(r *v1alpha1.Rate) (f schedule.Formula, name string) {
	if r == nil {
		return nil, ""
	}
	fields := reflect.ValueOf(r).Elem()
	for i := range fields.NumField() {
		if f, ok := fields.Field(i).Interface().(schedule.Formula); ok && !fields.Field(i).IsNil() {
			name, _, _ := strings.Cut(fields.Type().Field(i).Tag.Get("json"), ",")
			return f, name
		}
	}
	return nil, ""
}

// setFormula sets the field of a rate that has the type of f. It returns false if there
// is no such field.
func setFormula(r *v1alpha1.Rate, f schedule.Formula) bool {
	fields, v := reflect.ValueOf(r).Elem(), reflect.ValueOf(f)
	for i := range fields.NumField() {
		if fields.Field(i).Type() == v.Type() {
			fields.Field(i).Set(v)
			return true
		}
	}
	return false
}
