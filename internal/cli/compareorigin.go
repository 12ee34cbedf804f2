package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/reproduction"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// origin is where compared values are from: a bundle, a study, or an imported study.
type origin struct {
	label string
	// runs has the directory, or the file, of each run by its identity. A run that is there twice would count as two.
	runs map[string]string
	// cells have what their runs were asked for, by their levels; of an imported study it is unknown.
	cells map[string]*askedCell
}

// askedCell has the values of each fact that the runs of a cell were asked for.
type askedCell struct{ workload, around map[string][]string }

func newOrigin(label string) origin {
	return origin{label: label, runs: map[string]string{}, cells: map[string]*askedCell{}}
}

// addRun adds a run. It is an error if the run is there already.
func (o *origin) addRun(levels []string, r *bundle.Run, dir string) error {
	if err := o.addIdentity("run "+r.ID+" "+r.Identity.Nonce+" "+r.Clock.Start.String(), dir); err != nil {
		return err
	}
	asked, err := reproduction.AskedOf(r)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	c := o.cell(levels)
	for name, v := range asked.Workload {
		c.workload[name] = merged(c.workload[name], []string{v})
	}
	for name, v := range asked.Around {
		c.around[name] = merged(c.around[name], []string{v})
	}
	return nil
}

func (o *origin) cell(levels []string) *askedCell {
	key := strings.Join(levels, "\x00")
	if o.cells[key] == nil {
		o.cells[key] = &askedCell{map[string][]string{}, map[string][]string{}}
	}
	return o.cells[key]
}

// addIdentity notes a run, or the content of a file. The first two words of the identity are for messages.
func (o *origin) addIdentity(identity, name string) error {
	other, twice := o.runs[identity]
	switch {
	case !twice:
		o.runs[identity] = name
		return nil
	case other == name:
		return fmt.Errorf("%s is given twice: want each run once, because both would count as trials", name)
	}
	return fmt.Errorf("%s and %s are the same (%s): want each run once, because both would count as trials", other, name,
		strings.Join(strings.Fields(identity)[:2], " "))
}

// distinctOrigins reports a run that two origins have.
func distinctOrigins(list []origin) error {
	all := newOrigin("")
	for _, o := range list {
		for _, identity := range slices.Sorted(maps.Keys(o.runs)) {
			if err := all.addIdentity(identity, o.runs[identity]); err != nil {
				return err
			}
		}
	}
	return nil
}

// difference is a fact that the origins do not share.
type difference struct{ name, text string }

// differences are the facts that differ between the same cells of origins, by name. A fact that has several values
// within the cells of every origin is drawn from a distribution, and does not count.
func differences(list []origin, of func(*askedCell) map[string][]string) (found []difference) {
	keys := map[string]bool{}
	for _, o := range list {
		for key := range o.cells {
			keys[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		names := map[string]bool{}
		var with []origin
		for _, o := range list {
			if c := o.cells[key]; c != nil {
				with = append(with, o)
				for name := range of(c) {
					names[name] = true
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			text, differs := valuesIn(with, func(o *origin) []string { return of(o.cells[key])[name] })
			if d := (difference{name, text}); differs && !slices.Contains(found, d) {
				found = append(found, d)
			}
		}
	}
	return found
}

// maxValue limits a printed value, in bytes.
const maxValue = 60

// valuesIn lists the values of a fact with their origins: "4k (baseline), 64k (now)".
func valuesIn(list []origin, of func(*origin) []string) (text string, differs bool) {
	var values []string
	labels := map[string][]string{}
	drawn := true
	for i := range list {
		given := slices.Sorted(slices.Values(of(&list[i])))
		drawn = drawn && len(given) > 1
		value := strings.Join(given, ", ")
		if len(given) == 0 {
			value = "none"
		}
		values, labels[value] = merged(values, []string{value}), merged(labels[value], []string{list[i].label})
	}
	var parts []string
	for _, v := range values {
		l := labels[v]
		who := strings.Join(l[:min(2, len(l))], ", ")
		if n := len(l) - 2; n > 0 {
			who += fmt.Sprintf(" and %d more", n)
		}
		if len(v) > maxValue {
			v = strings.ToValidUTF8(v[:maxValue], "") + "…"
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", v, who))
	}
	return strings.Join(parts, ", "), len(values) > 1 && !drawn
}

// unlike compares what the origins were asked for. The notes name what differs. reason says why there is no verdict:
// workloads differ, and across, the names of --across, do not declare it.
func unlike(list []origin, across []string) (notes []string, reason string, err error) {
	workload := differences(list, func(c *askedCell) map[string][]string { return c.workload })
	covers := func(a, name string) bool { return a == acrossAll || a == name || strings.HasPrefix(name, a+".") }
	declared := func(name string) bool {
		return slices.ContainsFunc(across, func(a string) bool { return covers(a, name) })
	}
	var names []string
	for _, d := range workload {
		if names = merged(names, []string{d.name}); declared(d.name) {
			notes = append(notes, fmt.Sprintf("workload: %s differs, as declared (--across): %s", d.name, d.text))
		} else {
			notes = append(notes, fmt.Sprintf("workload: %s differs: %s", d.name, d.text))
		}
	}
	for _, a := range across {
		if len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return covers(a, name) }) {
			return nil, "", fmt.Errorf("--across: %q does not differ; want %s, or one of %s", a, acrossAll, listed(names))
		}
	}
	around := differences(list, func(c *askedCell) map[string][]string { return c.around })
	for _, d := range around {
		notes = append(notes, fmt.Sprintf("%s differs: %s", d.name, d.text))
	}
	if n := len(notes) - maxListed; n > 0 {
		notes = append(notes[:maxListed], fmt.Sprintf("%d more facts differ", n))
	}
	if undeclared := slices.DeleteFunc(names, declared); len(undeclared) > 0 {
		flag := acrossAll
		if len(undeclared) == 1 {
			flag = undeclared[0]
		}
		reason = fmt.Sprintf("the workloads differ (%s): see the notes; --across %s compares them nevertheless",
			listed(undeclared), flag)
	}
	return notes, reason, nil
}

// acrossAll is the value of --across for all differences.
const acrossAll = "all"
