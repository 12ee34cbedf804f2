package summary

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/record"
)

// TestInvalidate: a workload is invalid for an instance without I/O, and for figures
// of a part of its output, not for output that nothing was read from.
func TestInvalidate(t *testing.T) {
	for _, tt := range []struct {
		name string
		flag record.Flag
		want string
	}{
		{"no I/O", record.Flag{Name: "noIO", Severity: validity.Invalid, Evidence: "fio-0/fio: job x did no I/O"}, "fio-0: job x did no I/O"},
		{"figures of a part", record.Flag{Name: "outputCut", Severity: validity.Invalid, Evidence: "fio-0/fio: its figures are of a part"}, "fio-0: its figures are of a part"},
		{"output cut, nothing read", record.Flag{Name: "outputCut", Severity: validity.Warning, Evidence: "fio-0/fio stdout: 64 MiB kept"}, ""},
		{"of another", record.Flag{Name: "outputCut", Severity: validity.Invalid, Evidence: "dd-0/fio: its figures are of a part"}, ""},
		{"another flag", record.Flag{Name: "outputMissing", Severity: validity.Invalid, Evidence: "fio-0/fio: x"}, ""},
	} {
		s := &Summary{Workloads: []Workload{{Action: "fio", Instances: []Instance{{Name: "fio-0"}}}}, Validity: []record.Flag{tt.flag}}
		s.invalidate()
		if got := s.Workloads[0].Invalid; got != tt.want {
			t.Errorf("%s: invalid %q, want %q", tt.name, got, tt.want)
		}
	}
}
