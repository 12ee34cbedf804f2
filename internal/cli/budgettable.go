package cli

import (
	"fmt"
	"io"
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

func workBudgets(action string, list []model.Budget, times int64, prices model.Prices) (works []workBudget) {
	for i := range list {
		b := &list[i]
		w := workBudget{Action: action, Stage: b.Stage, Work: b.Work, Times: times}
		if !b.Open {
			requests, cost := b.Total(), b.Cost(prices)
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
		of := make([]model.Budget, len(b.Works))
		for j, w := range b.Works {
			of[j] = model.Budget(w)
		}
		works = append(works, workBudgets(b.Action, of, times, defaultObjectFlags().prices)...)
	}
	return works
}

var budgetColumns = []table.Column{{Name: "what"}, {Name: "storage_class"}, {Name: "action"}, {Name: "stage"},
	{Name: "work"}, {Name: "times", Type: table.Int}, {Name: "n", Type: table.Float}, {Name: "bytes", Type: table.Float},
	{Name: "sent_bytes", Type: table.Float}, {Name: "received_bytes", Type: table.Float},
	{Name: "cost", Type: table.Float}}

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
	return tableOf(budgetColumns, append(rows, workRows(objectBudgets(b.Objects))...))
}

// printWorkBudgets prints the budget of an object workload for programs.
func printWorkBudgets(out io.Writer, output, name string, works []workBudget, unknown error) error {
	if output == "csv" {
		return writeCSV(out, tableOf(budgetColumns, workRows(works)))
	}
	answer := struct {
		Name       string       `json:"name"`
		Works      []workBudget `json:"works"`
		NotCounted string       `json:"notCounted,omitempty"` // whose bytes are unknown
	}{Name: name, Works: works}
	if unknown != nil {
		answer.NotCounted = fmt.Sprint(unknown)
	}
	return quietPipe(writeJSON(out, answer))
}
