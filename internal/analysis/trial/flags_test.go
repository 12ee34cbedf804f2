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
			{Name: "readsFromCache", Severity: "invalid", Evidence: "fio-0: it read 1 GiB", Sources: []string{"fio-0"},
				Metrics: []string{"read"}},
			{Name: "canarySaturated", Severity: "warning", Evidence: "fio.canaryWrite: on fio-0-data",
				Sources: []string{"fio-0"}, Metrics: []string{"canaryWrite"}},
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
		{expr.Query{Func: expr.IOPS, Metric: read}, "hostBusy fioMessages readsFromCache ", true},
		{expr.Query{Func: expr.IOPS, Metric: expr.Metric{Action: "fio", Name: "write"}}, "hostBusy fioMessages ", false},
		{expr.Query{Func: expr.Quantile, Metric: expr.Metric{Action: "fio"}}, "hostBusy fioMessages ", false},
		{expr.Query{Func: expr.Rate, Metric: expr.Metric{Action: "snapshots"}}, "hostBusy ", false},
		{expr.InterferenceOf(read, "volumes"), "failedOps hostBusy fioMessages readsFromCache ", true},
		{expr.InterferenceOf(expr.Metric{Action: "fio", Name: "canaryWrite"}, "snapshots"),
			"hostBusy fioMessages canarySaturated ", false},
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
	if list, invalid := f.All(); len(list) != 5 || !invalid {
		t.Errorf("%v", list)
	}
}

// TestFlagsOfOlderBundle checks that a flag on reads that names no metrics, as older versions wrote it, does not concern
// the figures of control operations.
func TestFlagsOfOlderBundle(t *testing.T) {
	t.Parallel()
	f, err := trial.FlagsOf(&bundle.Run{
		Spec: json.RawMessage(`{"spec": {"actions": [{"name": "snapshots"}, {"name": "fio"}]}}`),
		Validity: []bundle.Flag{{Name: "readsFromCache", Severity: "invalid",
			Evidence: "fio-0 read 38.1 MiB, of which only 0 B (0 %) came from the device"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		of      expr.Metric
		invalid bool
	}{
		{expr.Metric{Action: "snapshots"}, false},
		{expr.Metric{Action: "fio", Name: "write"}, false},
		{expr.Metric{Action: "fio", Name: "read"}, true},
	} {
		if _, invalid := f.Of(expr.Query{Func: expr.Quantile, Q: 0.5, Metric: want.of}); invalid != want.invalid {
			t.Errorf("%s: invalid %v", want.of, invalid)
		}
	}
}
