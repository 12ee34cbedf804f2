package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// judge ends with an exit status of its own if a verdict is one of --fail-on, or if a figure cannot be trusted.
func (f *compareFlags) judge(r *compare.Result) error {
	seen := map[string]int{}
	for i := range r.Comparisons {
		seen[string(r.Comparisons[i].Gate().Verdict)]++
	}
	for _, h := range r.History {
		for _, c := range h.Changes {
			seen[string(c.Word)]++
		}
	}
	for _, v := range f.failOn {
		if n := seen[v]; n > 0 {
			return &exit{exitVerdict, fmt.Errorf("%s with the verdict %s (--fail-on)", count(n, "comparison"), v)}
		}
	}
	if err := f.unjudged(r, seen[string(verdict.None)], seen[string(verdict.Different)]); err != nil {
		return err
	}
	if f.strict && len(r.Flags) > 0 {
		return &exit{exitInvalid, fmt.Errorf("%s (--strict)", count(len(r.Flags), "validity flag"))}
	}
	return nil
}

// unjudged ends with an exit status of its own if --fail-on cannot judge what it is for: a level has no value where
// another has some, or none of the comparisons and changes has a verdict. Those that are different may be better or
// worse.
func (f *compareFlags) unjudged(r *compare.Result, without, different int) error {
	of := len(r.Comparisons)
	for _, h := range r.History {
		of += len(h.Changes)
	}
	switch {
	case len(f.failOn) == 0:
	case len(r.Absent) > 0:
		text := r.Absent[0].String()
		if n := len(r.Absent) - 1; n > 0 {
			text += fmt.Sprintf("; %d more", n)
		}
		return &exit{exitUnjudged, fmt.Errorf("--fail-on cannot judge: %s", text)}
	case of == 0 && len(r.History) == 0:
		return &exit{exitUnjudged, errors.New("--fail-on cannot judge: there is nothing to compare")}
	case of > 0 && without == of:
		return &exit{exitUnjudged, fmt.Errorf("--fail-on cannot judge: none of %s has a verdict", count(of, "comparison"))}
	case of > 0 && without+different == of:
		return &exit{exitUnjudged, fmt.Errorf("--fail-on cannot judge: none of %s has a verdict but different, because "+
			"it is unknown which values are better: see --direction", count(of, "comparison"))}
	}
	return nil
}

// gateNotes say which answers --fail-on judges, and which it cannot.
func (f *compareFlags) gateNotes(r *compare.Result) (notes []string) {
	if len(f.failOn) == 0 {
		return nil
	}
	within, without, different := 0, 0, 0
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		if c.Gate() != &c.Answer {
			within++
		}
		switch c.Gate().Verdict {
		case verdict.None:
			without++
		case verdict.Different:
			different++
		}
	}
	if within > 0 {
		notes = append(notes, fmt.Sprintf("--fail-on judges the answer for these occasions in %s, because there are too few "+
			"occasions to show a difference in general", count(within, "comparison")))
	}
	if without > 0 {
		notes = append(notes, fmt.Sprintf("--fail-on cannot judge %s without a verdict", count(without, "comparison")))
	}
	if different > 0 && !slices.Contains(f.failOn, string(verdict.Different)) {
		notes = append(notes, fmt.Sprintf("--fail-on cannot judge %s with the verdict different: say which values are "+
			"better by --direction", count(different, "comparison")))
	}
	for _, h := range r.History {
		if least := 2 * h.Parameters.MinSegment; len(h.Runs) < least {
			return append(notes, fmt.Sprintf("--fail-on cannot judge a history of %s: a change needs %d", count(len(h.Runs),
				"run"), least))
		}
	}
	return notes
}
