package cost_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/cost"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// objects writes a bundle of an object workload with scalars of instance o-0.
func objects(t *testing.T, run bundle.Run, scalars map[string]float64) *cost.Usage {
	t.Helper()
	run.ID, run.BarrierAt, run.EndedAt = "a", 0, op.Never
	w, err := bundle.Create(filepath.Join(t.TempDir(), "b"), run)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Environment(bundle.Environment{}); err != nil {
		t.Fatal(err)
	}
	for name, v := range scalars {
		w.Scalar(bundle.Scalar{Labels: bundle.Labels{Instance: "o-0", Action: "o"},
			Scalar: metric.Scalar{Metric: name, Value: v}})
	}
	if err := w.Close(func(r *bundle.Run) { r.State, r.EndedAt = bundle.Complete, hour }); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	d, err := dataset.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	u, err := cost.Read(d)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// twoStages has a stage of two works, each of which has metrics of its own beside those of the stage.
const twoStages = `{"spec":{"actions":[{"name":"o","createObjSpec":{"workload":"object","objectSpec":{"storage":{%s},
 "stages":[{"name":"prepare","works":[{"name":"fill","type":"prepare"}]},
 {"name":"main","works":[{"name":"a"},{"name":"b"}]}]}}}]}}`

// TestRequests counts requests with those sent again, each once, by kind.
func TestRequests(t *testing.T) {
	t.Parallel()
	scalars := map[string]float64{
		"read.attempts": 1010, "read.ok": 1000, "read.bytes": 5e9, "read.failed": 10,
		"a.read.attempts": 600, "a.read.ok": 590, "a.read.bytes": 3e9, "b.read.attempts": 410, "b.read.ok": 410,
		"b.read.bytes": 2e9, "list2.attempts": 7, "list2.ok": 7, "large.attempts": 3, "large.ok": 3,
		"prepare.write.attempts": 100, "prepare.write.ok": 100, "prepare.write.bytes": 1e9}
	spec := func(storage string) json.RawMessage {
		return json.RawMessage(strings.Replace(twoStages, "%s", storage, 1))
	}
	u := objects(t, bundle.Run{Engine: "local", Spec: spec("")}, scalars)
	for kind, want := range map[string]float64{"GET": 1010, "PUT": 100, "LIST": 7} {
		near(t, kind, u.Requests[kind], want)
	}
	near(t, "received", u.Received, 5e9)
	near(t, "moved", *u.Moved, 6e9)
	near(t, "operations", *u.IOs, 1000+100+7+3)
	if len(u.Requests) != 3 || !slices.Contains(u.Unobserved, "requests of operation large: its kind is unknown") {
		t.Errorf("%v, %q", u.Requests, u.Unobserved)
	}
	// Objects that are files on a volume make no requests.
	u = objects(t, bundle.Run{Engine: "local", Spec: spec(`"fileSpec":{}`)}, scalars)
	if len(u.Requests) != 0 || u.Received != 0 || *u.IOs != 1110 {
		t.Errorf("of files: %+v", u)
	}
	// An object storage run has metrics of its works alone.
	u = objects(t, bundle.Run{Engine: bundle.Objects, Plan: json.RawMessage(`{"stages":[]}`)},
		map[string]float64{"write.attempts": 5, "write.ok": 4, "write.bytes": 8})
	if u.Requests["PUT"] != 5 || *u.IOs != 4 || *u.Moved != 8 {
		t.Errorf("%+v", u)
	}
}
