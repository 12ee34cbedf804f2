package reproduction_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/reproduction"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// TestAskedOf: the storage is no part of the workload, and each variable has one name.
func TestAskedOf(t *testing.T) {
	t.Parallel()
	got, err := reproduction.AskedOf(&bundle.Run{Engine: "local", Seed: 7,
		Spec: json.RawMessage(`{"spec": {"runtime": "3s",
		"actions": [{"name": "load", "createObjSpec": {"workload": "fio", "vars": {"bs": "4k", "storageClass": "a"}}},
			{"name": "volumes", "createObjSpec": {"volume": {"size": "64Mi", "storageClass": "a"}}}],
		"rates": [{"name": "parallel", "constantRateSpec": {"interval": "10ms"}}]}}`),
		Plan:   json.RawMessage(`{"runtime": "3s", "vars": {"load": {"bs": "4k", "storageClass": "a"}}, "inject": "x"}`),
		Source: bundle.Source{Workloads: []bundle.Workload{{Name: "fio", SHA256: "ab"}}}})
	if err != nil {
		t.Fatal(err)
	}
	want := reproduction.Asked{
		Workload: reproduction.Facts{"spec.runtime": "3s", "load.bs": "4k", "spec.actions.load.name": "load",
			"spec.actions.load.createObjSpec.workload": "fio", "spec.actions.volumes.name": "volumes",
			"spec.actions.volumes.createObjSpec.volume.size": "64Mi", "spec.rates.parallel.name": "parallel",
			"spec.rates.parallel.constantRateSpec.interval": "10ms"},
		Around: reproduction.Facts{"platform": "local", "inject": "x", "workload[fio].sha256": "ab"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
