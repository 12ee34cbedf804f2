package reproduction

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/trial"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// ErrIncomplete says that a run cannot be compared.
var ErrIncomplete = errors.New("the run did not complete: its figures cannot be compared")

// Compare compares complete runs; each side has at least one. Errors are those of reading them, and ErrIncomplete.
func Compare(then, now []*bundle.Bundle) (*Result, error) {
	r := &Result{Format: Format, Analysis: summary.ThisAnalysis(), Changed: []Difference{}}
	for _, b := range slices.Concat(then, now) {
		if !b.Complete || b.Run.State != bundle.Complete {
			return nil, fmt.Errorf("%s: %w", b.Dir, ErrIncomplete)
		}
	}
	var err error
	if r.Facts, err = compareBundles(then[0], now[0]); err != nil {
		return nil, err
	}
	for _, side := range [][]*bundle.Bundle{then, now} {
		if err := r.changedWithin(side); err != nil {
			return nil, err
		}
	}
	if r.Plan, err = comparePlans(then[0], now[0]); err != nil {
		return nil, err
	}
	a, err := read(then)
	if err != nil {
		return nil, err
	}
	b, err := read(now)
	if err != nil {
		return nil, err
	}
	r.Then, r.Now = runsOf(a), runsOf(b)
	r.marks(a, b)
	if r.Schedules, err = schedules(a[0], b[0]); err != nil {
		return nil, err
	}
	if err := r.results(a, b); err != nil {
		return nil, err
	}
	r.Sentences = r.sentences()
	return r, nil
}

func read(bundles []*bundle.Bundle) (list []run, err error) {
	for _, b := range bundles {
		one := run{bundle: b}
		if one.data, one.values, err = trial.Read(b, trial.Values); err != nil {
			return nil, fmt.Errorf("%s: %w", b.Dir, err)
		}
		list = append(list, one)
	}
	return list, nil
}

func runsOf(list []run) (runs []Run) {
	for _, one := range list {
		r := &one.bundle.Run
		runs = append(runs, Run{one.bundle.Dir, r.ID, r.Clock.Start, r.Versions["cnsbench"]})
	}
	return runs
}

// changedWithin adds the facts that changed between the runs of one side.
func (r *Result) changedWithin(side []*bundle.Bundle) error {
	for _, b := range side[1:] {
		c, err := compareBundles(side[0], b)
		if err != nil {
			return err
		}
		for _, d := range c.Differences {
			same := func(x Difference) bool { return x.Fact == d.Fact }
			if !slices.ContainsFunc(r.Changed, same) {
				r.Changed = append(r.Changed, d)
			}
		}
	}
	return nil
}

// maxPlanDifferences bounds the members that are listed.
const maxPlanDifferences = 20

func comparePlans(then, now *bundle.Bundle) (*Plan, error) {
	p := &Plan{Differences: []Difference{}}
	var facts [2]Facts
	for i, side := range []struct {
		b   *bundle.Bundle
		sum *string
	}{{then, &p.Then}, {now, &p.Now}} {
		text, err := side.b.PlanText()
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var v any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			return nil, fmt.Errorf("%s: plan.json: %w", side.b.Dir, err)
		}
		canonical, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(canonical)
		*side.sum = hex.EncodeToString(sum[:])
		facts[i] = Facts{}
		facts[i].flatten("", v)
	}
	p.Same = p.Then == p.Now && p.Then != ""
	if p.Then != "" && p.Now != "" && !p.Same {
		p.Differences = CompareFacts(facts[0], facts[1], [2]int{}).Differences
		p.Differences = p.Differences[:min(len(p.Differences), maxPlanDifferences)]
	}
	return p, nil
}

// marks lists the flags and objectives of both sides.
func (r *Result) marks(then, now []run) {
	flags, verdicts := marks{}, marks{}
	for side, list := range [][]run{then, now} {
		for _, one := range list {
			for _, f := range one.bundle.Run.Validity {
				flags.add(side, f.Name, f.Severity)
			}
			for _, v := range one.bundle.Run.Verdicts {
				verdicts.add(side, v.Name, string(v.Status))
			}
		}
	}
	r.Flags, r.Verdicts = flags.list, verdicts.list
	if r.Flags == nil {
		r.Flags = []Mark{}
	}
	if r.Verdicts == nil {
		r.Verdicts = []Mark{}
	}
}

type marks struct{ list []Mark }

func (m *marks) add(side int, name, state string) {
	i := slices.IndexFunc(m.list, func(x Mark) bool { return x.Name == name })
	if i < 0 {
		i = len(m.list)
		m.list = append(m.list, Mark{Name: name, Then: []string{}, Now: []string{}})
	}
	of := []*[]string{&m.list[i].Then, &m.list[i].Now}[side]
	if !slices.Contains(*of, state) {
		*of = append(*of, state)
	}
}

// Differs says whether the states of a mark differ.
func (m *Mark) Differs() bool {
	a, b := slices.Sorted(slices.Values(m.Then)), slices.Sorted(slices.Values(m.Now))
	return !slices.Equal(a, b)
}
