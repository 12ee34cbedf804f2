package model_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
)

// TestPlaces checks that each container that is created is returned once, with the account that creates it.
func TestPlaces(t *testing.T) {
	init := func(kind model.WorkKind, store, account string, low, high int64) model.Work {
		return model.Work{Kind: kind, Store: model.Store{Kind: store, Secrets: model.Secrets{"accesskey": account}},
			Ops: []model.Op{{ContainerName: model.Name{Prefix: "c", Suffix: "x"},
				Containers: selector.Spec{Low: low, High: high}}}}
	}
	w := &model.Workload{Stages: []model.Stage{
		{Works: []model.Work{init(model.Init, "s3", "a", 1, 2), init(model.Init, "s3", "b", 1, 2),
			init(model.Init, "null", "", 1, 9)}},
		{Works: []model.Work{init(model.Init, "s3", "a", 1, 2), init(model.Init, "s3", "a", 7, 7),
			init(model.Prepare, "s3", "a", 5, 5)}},
	}}
	var got []string
	for _, p := range model.Places(w, backend.Traits) {
		for _, n := range p.Containers {
			got = append(got, fmt.Sprint(p.Store.Secrets["accesskey"], slices.Collect(n.All())))
		}
	}
	if want := []string{"a[c1x c2x]", "a[c7x]", "b[c1x c2x]"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
