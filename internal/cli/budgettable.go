package cli

import (
	"maps"
	"slices"

	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// workBudget is what a work of an object workload would send. Its numbers are missing where they have no bound.
type workBudget struct {
	Action   string   `json:"action,omitempty"` // of a Benchmark
	Stage    string   `json:"stage"`
	Work     string   `json:"work"`
	Times    int64    `json:"times"` // how often the numbers count; 0: its rate has no end
	Requests *float64 `json:"requests"`
	Sent     *float64 `json:"sentBytes"`
	Received *float64 `json:"receivedBytes"`
	Cost     *float64 `json:"cost"` // without storage
}

func workBudgets(action string, list []model.Budget, times int64) (works []workBudget) {
	for i := range list {
		b := &list[i]
		w := workBudget{Action: action, Stage: b.Stage, Work: b.Work, Times: times}
		if !b.Open {
			requests, cost := b.Total(), b.Cost(listPrices)
			w.Requests, w.Sent, w.Received, w.Cost = &requests, &b.Sent, &b.Received, &cost
		}
		works = append(works, w)
	}
	return works
}

// objectBudgets are those of a Benchmark's object workloads.
func objectBudgets(list []plan.ObjectBudget) (works []workBudget) {
	for i := range list {
		b := &list[i]
		times := b.Times
		if b.Open {
			times = 0
		}
		works = append(works, workBudgets(b.Action, budgetsOf(b), times)...)
	}
	return works
}

func budgetsOf(b *plan.ObjectBudget) (list []model.Budget) {
	for _, w := range b.Works {
		list = append(list, model.Budget(w))
	}
	return list
}

var budgetColumns = []string{"what", "storage_class", "action", "stage", "work", "times", "n", "bytes", "sent_bytes",
	"received_bytes", "cost"}

func workRows(works []workBudget) (rows [][]any) {
	for i := range works {
		w := &works[i]
		rows = append(rows, []any{"requests", nil, w.Action, w.Stage, w.Work, w.Times, known(w.Requests), nil,
			known(w.Sent), known(w.Received), known(w.Cost)})
	}
	return rows
}

// budgetTable has a row for each kind of object that a Benchmark would create, for the volumes of each StorageClass,
// for each rate without an end, and for each work of its object workloads.
func budgetTable(b *plan.Budget) *table.Table {
	var rows [][]any
	add := func(what string, class any, n, bytes any) {
		rows = append(rows, []any{what, class, nil, nil, nil, nil, n, bytes, nil, nil, nil})
	}
	add("volumes", nil, float64(b.Volumes), float64(b.Bytes))
	for _, name := range slices.Sorted(maps.Keys(b.Classes)) {
		c := b.Classes[name]
		add("volumes of a class", name, float64(c.Volumes), float64(c.Bytes))
	}
	add("snapshots", nil, float64(b.Snapshots), nil)
	add("pods", nil, float64(b.Pods), nil)
	add("operations", nil, float64(b.Ops), nil)
	for _, open := range b.Open {
		add("in addition: "+open, nil, nil, nil)
	}
	return tableOf(append(rows, workRows(objectBudgets(b.Objects))...), budgetColumns...)
}
