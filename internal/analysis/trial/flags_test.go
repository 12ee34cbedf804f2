package trial_test

import (
	"encoding/json"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/trial"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
)

// TestFlagsOf: a flag of one action concerns its values only; one of the machine concerns all; failed operations do not
// make the number of failures invalid.
func TestFlagsOf(t *testing.T) {
	t.Parallel()
	f, err := trial.FlagsOf(&bundle.Run{
		Spec: json.RawMessage(`{"spec": {"actions": [{"name": "volumes"}, {"name": "fio"}]}}`),
		Validity: []bundle.Flag{
			{Name: "failedOps", Severity: "invalid", Evidence: "volumes: of 10 ops 5 failed"},
			{Name: "hostBusy", Severity: "warning", Evidence: "this machine: busy"},
			{Name: "fioMessages", Severity: "warning", Evidence: "fio-0/fio: output", Sources: []string{"fio-0/fio"}},
			{Name: "phases", Severity: "info", Evidence: "fio has phases"},
		}})
	if err != nil {
		t.Fatal(err)
	}
	volumes, read := expr.Metric{Action: "volumes"}, expr.Metric{Action: "fio", Name: "read"}
	for _, want := range []struct {
		of      expr.Query
		flags   string
		invalid bool
	}{
		{expr.Query{Func: expr.Quantile, Q: 0.5, Metric: volumes}, "failedOps hostBusy ", true},
		{expr.Query{Func: expr.Errors, Metric: volumes}, "hostBusy ", false},
		{expr.Query{Func: expr.IOPS, Metric: read}, "hostBusy fioMessages ", false},
		{expr.InterferenceOf(read, "volumes"), "failedOps hostBusy fioMessages ", true},
	} {
		names := ""
		list, invalid := f.Of(want.of)
		for _, x := range list {
			names += x.Name + " "
		}
		if names != want.flags || invalid != want.invalid {
			t.Errorf("%s: %q, invalid %v; want %q, %v", want.of, names, invalid, want.flags, want.invalid)
		}
	}
	if list, invalid := f.All(); len(list) != 3 || !invalid {
		t.Errorf("%v", list)
	}
}
