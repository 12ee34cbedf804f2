package summary

import (
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// TestInvalidate: the figures of each workload with an instance that did no I/O are
// invalid, also of those that the evidence counts without naming them.
func TestInvalidate(t *testing.T) {
	workloads := func() []Workload {
		return []Workload{
			{Action: "a", Instances: []Instance{{Name: "a-0"}, {Name: "a-1"}}},
			{Action: "b", Instances: []Instance{{Name: "b-0"}, {Name: "b-1"}, {Name: "b-10"}}},
			{Action: "c", Instances: []Instance{{Name: "c-0"}}},
		}
	}
	one := func(evidence string, sources ...string) bundle.Flag {
		return bundle.Flag{Name: validity.NoIO, Severity: validity.Invalid, Evidence: evidence, Sources: sources}
	}
	for _, tt := range []struct {
		name  string
		flags []bundle.Flag
		want  []string
	}{
		{"one flag of several", []bundle.Flag{one("a-1/fio and 2 more: no I/O was done", "a-1/fio", "b-0/fio",
			"b-10/fio")},
			[]string{"a-1: no I/O was done", "2 instances (b-0, b-10): no I/O was done", ""}},
		{"two containers of one", []bundle.Flag{one("c-0/x and 1 more: no I/O was done", "c-0/x", "c-0/y")},
			[]string{"", "", "c-0: no I/O was done"}},
		{"a bundle of before", []bundle.Flag{one("b-1/fio: job b-1 did no I/O"), one("b-0/fio: job b-0 did no I/O")},
			[]string{"", "b-1: job b-1 did no I/O", ""}},
		{"another flag", []bundle.Flag{{Name: "notDirect", Evidence: "a-0/fio: direct=0",
			Sources: []string{"a-0/fio"}}},
			[]string{"", "", ""}},
		{"figures of a part of the output", []bundle.Flag{{Name: validity.OutputCut, Severity: validity.Invalid,
			Evidence: "a-0/fio: its figures are of a part", Sources: []string{"a-0/fio"}}}, []string{"a-0: its figures are of a part", "", ""}},
		{"output cut from which nothing was read", []bundle.Flag{{Name: validity.OutputCut, Severity: validity.Warning,
			Evidence: "a-0/fio stdout: 64 MiB kept"}}, []string{"", "", ""}},
	} {
		s := Summary{Workloads: workloads(), Validity: tt.flags}
		s.invalidate()
		var got []string
		for _, w := range s.Workloads {
			got = append(got, w.Invalid)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
