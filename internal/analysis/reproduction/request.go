package reproduction

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// Asked are facts of what a run was asked for, by the names that --set takes: load.bs, spec.rates.parallel.interval.
type Asked struct {
	// Workload has the load: actions, rates, variables, durations, sizes. Results of two workloads are not comparable.
	Workload Facts
	// Around has what else was asked for: the platform, injected faults, the contents of library workloads.
	Around Facts
}

// storageNames are facts of the storage that is measured, or that have no part in the load.
var storageNames = regexp.MustCompile(`^seed$|\.(storageClass|snapshotClass|volumeSnapshotClass|image)$|` +
	`^benchmark\.(slos|outputs|maxOutput|cost|description)\b|\.objectSpec\.storage\.|^limits\.`)

// around are the facts of Asked.Around, besides workload[NAME].
var around = []string{"platform", "inject"}

// variable matches a variable as the Benchmark gives it; the resolved ones include it.
var variable = regexp.MustCompile(`^benchmark\.actions\[([^]]*)\]\.createObjSpec\.vars\.(.*)$`)

// element matches the name of an element of a list.
var element = regexp.MustCompile(`\[([^]]*)\]`)

// AskedOf returns what a run was asked for. Of an object workload it is the file.
func AskedOf(r *bundle.Run) (Asked, error) {
	a := Asked{Workload: Facts{}, Around: Facts{}}
	all, err := OfRun(r)
	if err != nil {
		return a, err
	}
	if r.ObjectsOnly() {
		a.Workload["file"] = fmt.Sprintf("SHA-256 %.12x", sha256.Sum256([]byte(r.Source.Text)))
	}
	for name, value := range all {
		switch {
		case storageNames.MatchString(name):
		case slices.Contains(around, name) || strings.HasPrefix(name, "workload["):
			a.Around[name] = value
		case groupOf(name) == Request:
			if m := variable.FindStringSubmatch(name); m != nil {
				if _, resolved := all["variables."+m[1]+"."+m[2]]; resolved {
					continue
				}
			}
			a.Workload[settable(name)] = value
		}
	}
	return a, nil
}

// settable is the name of a fact as --set takes it.
func settable(name string) string {
	if rest, ok := strings.CutPrefix(name, "variables."); ok {
		return rest
	}
	if rest, ok := strings.CutPrefix(name, "benchmark."); ok {
		name = "spec." + rest
	}
	return element.ReplaceAllString(name, ".$1")
}
