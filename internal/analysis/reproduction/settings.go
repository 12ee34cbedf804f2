package reproduction

import (
	"regexp"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// Settings are the facts by which runs of a series may differ.
type Settings struct {
	facts  Facts
	format int // of environment.json
}

// SettingsOf reads the settings of a run.
func SettingsOf(b *bundle.Bundle) (Settings, error) {
	f, err := Of(b)
	if err != nil {
		return Settings{}, err
	}
	e, err := b.Environment()
	return Settings{facts: f, format: e.Format}, err
}

// noSettings are facts of a request that have no part in what is measured, or that another fact includes.
var noSettings = regexp.MustCompile(`^seed$|^limits\.|^benchmark\.(slos|outputs|maxOutput|cost|description)\b`)

// Changed returns what differs from the settings of an earlier run, by the names that --set takes: what was asked for,
// storage, machine and programs.
func (s Settings) Changed(earlier Settings) (list []Difference) {
	c := CompareFacts(earlier.facts, s.facts, [2]int{earlier.format, s.format})
	for _, d := range c.Differences {
		if d.Group == Place || noSettings.MatchString(d.Fact) {
			continue
		}
		if m := variable.FindStringSubmatch(d.Fact); m != nil {
			resolved := "variables." + m[1] + "." + m[2]
			if slices.ContainsFunc(c.Differences, func(d Difference) bool { return d.Fact == resolved }) {
				continue
			}
		}
		if d.Group == Request && !strings.HasPrefix(d.Fact, "trace[") {
			d.Fact = settable(d.Fact)
		}
		list = append(list, d)
	}
	return list
}
