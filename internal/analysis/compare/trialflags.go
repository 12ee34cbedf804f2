package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/observation"
)

// flagTrials marks a cell with the validity flags of its n trials. If the share of trials that are invalid or have no
// value is greater than maxMissing, the cell is not judged. Otherwise only their values are left out.
func (s *study) flagTrials(k key, n int) {
	c := s.cell(k)
	for _, g := range flagGroups(s.table.Flags[k]) {
		f := Flag{Name: g.Name, Severity: g.Severity, Metric: c.Metric, Level: c.Level, Context: c.Context,
			Evidence: g.Evidence, Trials: g.trials, Of: n, Warned: true, first: g.Evidence}
		of, text := "", g.Evidence
		if g.OfCell {
			f.Trials, f.Of = 0, 0
		} else {
			of = fmt.Sprintf("%d of %d trials of ", g.trials, n)
			text = fmt.Sprintf("%s in %d of %d trials", g.Name, g.trials, n)
			f.Evidence = fmt.Sprintf("%d of %d trials; the first: %s", g.trials, n, g.Evidence)
		}
		switch {
		case g.Severity != invalid:
			s.doubts[k] = append(s.doubts[k], doubt{g.Name, of + c.Level})
		case float64(c.Invalid+c.Missing) <= maxMissing*float64(n):
			f.Severity = warning
			f.Evidence += "; their values are left out"
			text += ": their values are left out"
		default:
			text += ": their values are left out, and there is no verdict"
		}
		s.result.Flags = append(s.result.Flags, f)
		s.warn(k, g.Name, "%s", text)
	}
}

// doubt is a flag that weakens a verdict, and the trials that have it.
type doubt struct{ name, of string }

// doubtsOf are the doubts of both sides of a comparison, by name: "hostBusy (6 of 6 trials of a, 1 of 6 trials of b)".
func doubtsOf(both []doubt) (list []string) {
	var names []string
	of := map[string][]string{}
	for _, d := range both {
		names, of[d.name] = addOnce(names, d.name), append(of[d.name], d.of)
	}
	for _, name := range names {
		list = append(list, fmt.Sprintf("%s (%s)", name, strings.Join(of[name], ", ")))
	}
	return list
}

// flagGroup are the flags of one name and severity.
type flagGroup struct {
	observation.Flag
	trials int
}

// flagGroups gathers flags by name and severity, in order of appearance.
func flagGroups(flags []observation.Flag) (list []flagGroup) {
	for _, f := range flags {
		at := slices.IndexFunc(list, func(g flagGroup) bool { return g.Name == f.Name && g.Severity == f.Severity })
		if at < 0 {
			at = len(list)
			list = append(list, flagGroup{Flag: f})
		}
		list[at].trials++
	}
	return list
}

// reasons names the flags for which trials of a cell are invalid, with the evidence of the first trial.
func (s *study) reasons(k key) string {
	var list []string
	for _, g := range flagGroups(s.table.Flags[k]) {
		if g.Severity == invalid {
			list = append(list, fmt.Sprintf("%s: %s", g.Name, g.Evidence))
		}
	}
	return strings.Join(list, "; ")
}

// maxFlagged is the most cells that a sentence about a flag names.
const maxFlagged = 6

// trialSentences name the flags of trials: a sentence for each name and severity.
func trialSentences(flags []Flag) (list []string) {
	type group struct {
		name, severity, first string
		cells, metrics        []string
	}
	var groups []group
	for _, f := range flags {
		if f.first == "" {
			continue
		}
		at := slices.IndexFunc(groups, func(g group) bool { return g.name == f.Name && g.severity == f.Severity })
		if at < 0 {
			at = len(groups)
			groups = append(groups, group{name: f.Name, severity: f.Severity, first: f.first})
		}
		g := &groups[at]
		g.cells, g.metrics = addOnce(g.cells, f.cell()), addOnce(g.metrics, f.Metric)
	}
	slices.SortStableFunc(groups, func(a, b group) int { return strings.Compare(a.severity, b.severity) }) // invalid first
	for _, g := range groups {
		cells := g.cells
		if n := len(cells) - maxFlagged; n > 0 {
			cells = append(slices.Clone(cells[:maxFlagged]), more(n, "cell"))
		}
		list = append(list, fmt.Sprintf("%s: %s of %s (%s); the first: %s.", capital(g.severity), g.name,
			strings.Join(cells, ", "), countOr(g.metrics, "metric"), g.first))
	}
	return list
}

// cell names the cell of a flag with its number of trials.
func (f *Flag) cell() string {
	name := f.Level
	for _, l := range f.Context {
		name += ", " + l.Factor + " " + l.Level
	}
	if f.Trials == 0 {
		return name
	}
	return fmt.Sprintf("%s in %d of %d trials", name, f.Trials, f.Of)
}

// countOr lists up to three names, and counts more.
func countOr(names []string, noun string) string {
	if len(names) <= 3 {
		return strings.Join(names, ", ")
	}
	return plural(len(names), noun)
}

func addOnce(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
