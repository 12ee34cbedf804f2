package trial

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/observation"
)

// Flags are the recorded validity flags of a run that are more than information.
type Flags struct {
	list    []bundle.Flag
	actions []string
}

// FlagsOf reads the flags of a run.
func FlagsOf(r *bundle.Run) (Flags, error) {
	f := Flags{list: slices.DeleteFunc(slices.Clone(r.Validity), func(x bundle.Flag) bool {
		return x.Severity != validity.Invalid && x.Severity != validity.Warning
	})}
	if len(f.list) == 0 || len(r.Spec) == 0 {
		return f, nil
	}
	var spec struct {
		Spec struct {
			Actions []struct {
				Name string `json:"name"`
			} `json:"actions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Spec, &spec); err != nil {
		return f, fmt.Errorf("read spec of run.json: %w", err)
	}
	for _, a := range spec.Spec.Actions {
		f.actions = append(f.actions, a.Name)
	}
	return f, nil
}

// Of returns the flags that concern the value of a query, one of each name and severity. A flag of one action concerns
// the values of that action only, one of some metrics the values of these, one of no action all values. invalid says that the value must not be used.
func (f Flags) Of(q expr.Query) (list []observation.Flag, invalid bool) {
	return f.where(func(x bundle.Flag) bool { return f.concerns(x, q) })
}

// All returns all flags, for a value that depends on the whole run, such as its cost.
func (f Flags) All() (list []observation.Flag, invalid bool) {
	return f.where(func(bundle.Flag) bool { return true })
}

func (f Flags) where(concerns func(bundle.Flag) bool) (list []observation.Flag, invalid bool) {
	for _, x := range f.list {
		same := func(o observation.Flag) bool { return o.Name == x.Name && o.Severity == x.Severity }
		if !concerns(x) || slices.ContainsFunc(list, same) {
			continue
		}
		invalid = invalid || x.Severity == validity.Invalid
		list = append(list, observation.Flag{Name: x.Name, Severity: x.Severity, Evidence: x.Evidence})
	}
	return list, invalid
}

// counting are the functions whose values are the failures that a flag reports.
var counting = []expr.Func{expr.Errors, expr.Dropped, expr.Censored, expr.Count, expr.Ops}

func (f Flags) concerns(x bundle.Flag, q expr.Query) bool {
	if (x.Name == validity.FailedOps || x.Name == validity.DroppedOps) && slices.Contains(counting, q.Func) {
		return false
	}
	of := f.actionsOf(x)
	if ms := validity.Metrics(x); ms != nil && !q.OfTenant() {
		return slices.Contains(of, q.Metric.Action) && q.Metric.From == "" && slices.Contains(ms, q.Metric.Name)
	}
	if len(of) == 0 || q.OfTenant() || q.Metric.Action == "" || slices.Contains(of, q.Metric.Action) {
		return true
	}
	return slices.ContainsFunc(q.Windows, func(w expr.Window) bool { return slices.Contains(of, w.Action) })
}

// actionsOf are the actions that a flag concerns, by its sources or the name before its evidence; none: all.
func (f Flags) actionsOf(x bundle.Flag) (list []string) {
	for _, source := range validity.Sources(x) {
		name, _, _ := strings.Cut(source, "/")
		at := slices.IndexFunc(f.actions, func(a string) bool { return name == a || instanceOf(name, a) })
		if at < 0 {
			return nil
		}
		list = append(list, f.actions[at])
	}
	return list
}

// instanceOf reports whether a name is that of an instance of an action: the action's, a dash and a number.
func instanceOf(name, action string) bool {
	number, ok := strings.CutPrefix(name, action+"-")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}
