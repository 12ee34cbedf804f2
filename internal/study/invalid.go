package study

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// Invalid counts finished trials with a validity flag of severity invalid.
type Invalid struct {
	Trials int         `json:"trials"`
	Flags  []FlagCount `json:"flags"`
}

// FlagCount is a validity flag with the number of trials that have it.
type FlagCount struct {
	Name     string `json:"name"`
	Trials   int    `json:"trials"`
	Evidence string `json:"evidence"` // of the first trial
}

// InvalidTrials reads the flags of all finished trials.
func (d *Dir) InvalidTrials() Invalid {
	i := Invalid{Flags: []FlagCount{}}
	for _, t := range d.Trials {
		if run, done := d.finished(t); done {
			i.add(&run)
		}
	}
	return i
}

// add counts a trial if it is invalid.
func (i *Invalid) add(r *bundle.Run) {
	var names []string
	for _, f := range r.Validity {
		if f.Severity != validity.Invalid || slices.Contains(names, f.Name) {
			continue
		}
		names = append(names, f.Name)
		at := slices.IndexFunc(i.Flags, func(c FlagCount) bool { return c.Name == f.Name })
		if at < 0 {
			at = len(i.Flags)
			i.Flags = append(i.Flags, FlagCount{Name: f.Name, Evidence: f.Evidence})
		}
		i.Flags[at].Trials++
	}
	if len(names) > 0 {
		i.Trials++
	}
}

// String is "6 of them invalid: failedOps in 6 (the first: volumes: of 3 ops 3 failed …)"; empty if there are none.
func (i Invalid) String() string {
	if i.Trials == 0 {
		return ""
	}
	var parts []string
	for _, f := range i.Flags {
		parts = append(parts, fmt.Sprintf("%s in %d (the first: %s)", f.Name, f.Trials, f.Evidence))
	}
	return fmt.Sprintf("%d of them invalid: %s", i.Trials, strings.Join(parts, "; "))
}
