package reproduction

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSettingsChanged: what a run was asked for and where it ran counts, each once; the seed, names of places, what
// differs between any two runs, and what one version does not record does not.
func TestSettingsChanged(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	then := Settings{Facts{"seed": "1", "hostname": "a", "kernel.release": "6.1", "load": "1",
		"benchmark.actions[load].createObjSpec.vars.bs": "4k", "variables.load.bs": "4k", "variables.load.rw": "read",
		"benchmark.slos[quick].expr": "p99(load) < 1", "workload[fio].sha256": "11", "limits.runtime": "1m"}, 1}
	now := Settings{Facts{"seed": "2", "hostname": "b", "kernel.release": "6.2", "load": "2",
		"benchmark.actions[load].createObjSpec.vars.bs": "64k", "variables.load.bs": "64k", "variables.load.rw": "read",
		"benchmark.slos[quick].expr": "p99(load) < 2", "workload[fio].sha256": "22", "limits.runtime": "2m"}, 1}
	want := []Difference{
		{"load.bs", Request, text("4k"), text("64k")},
		{"kernel.release", Machine, text("6.1"), text("6.2")},
		{"workload[fio].sha256", Program, text("11"), text("22")},
	}
	if diff := cmp.Diff(want, now.Changed(then)); diff != "" {
		t.Error(diff)
	}
	then.facts["sysctls.new"] = "1"
	if now.format = 2; len(now.Changed(then)) != len(want) {
		t.Errorf("a fact of one format is a difference: %+v", now.Changed(then))
	}
	if got := now.Changed(now); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
