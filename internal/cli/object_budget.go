package cli

import (
	"io"
	"text/tabwriter"

	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/object/capacity"
	oload "github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// dryRun prints the budget of a workload; with a search that of one step.
func dryRun(s *streams, output string, w *model.Workload, find *capacity.Finder) error {
	once := w
	if find != nil {
		once, _ = find.Once(w, find.Search.From)
	}
	budgets, unknown := oload.Budgets(once, oload.MeanFileSize)
	works := workBudgets("", budgets, 1)
	answer := struct {
		Name       string       `json:"name"`
		Works      []workBudget `json:"works"`
		NotCounted string       `json:"notCounted,omitempty"` // whose bytes are unknown
	}{Name: w.Name, Works: works}
	if unknown != nil {
		answer.NotCounted = unknown.Error()
	}
	csv := func() *table.Table { return tableOf(workRows(works), budgetColumns...) }
	return s.print(output, answer, csv, func() error {
		visible.Fprintf(s.out, "%s would send:\n", w.Name)
		if err := writeBudgets(s.out, budgets, 1); err != nil {
			return err
		}
		if unknown != nil {
			visible.Fprintf(s.out, "bytes of these are not counted: %v\n", unknown)
		}
		if find != nil {
			writeSearch(s.out, w, find)
		}
		_, err := visible.Fprintln(s.out, "nothing was sent")
		return err
	})
}

// writeSearch prints what a search adds to its first step, which is in the table.
func writeSearch(out io.Writer, w *model.Workload, find *capacity.Finder) {
	most, took := find.Once(w, find.Search.Most)
	budgets, _ := oload.Budgets(most, oload.MeanFileSize) // an error was printed
	requests, cost := 0.0, 0.0
	for i := range budgets {
		if budgets[i].Stage == find.Stage {
			requests, cost = requests+budgets[i].Total(), cost+budgets[i].Cost(listPrices)
		}
	}
	visible.Fprintf(out, "stage %s is counted once, at %g a second: the search repeats it, at rates that are not "+
		"known beforehand; a step at %g a second, the highest, sends %.0f requests in %v, at a cost of %.4f\n",
		find.Stage, find.Search.From, find.Search.Most, requests, took, cost)
}

// writeBudgets prints the requests and bytes of works, and their cost for that many runs.
func writeBudgets(out io.Writer, list []model.Budget, times int64) error {
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	visible.Fprintln(t, "stage\twork\trequests\tbytes sent\tbytes received\tcost\t")
	total, atLeast := 0.0, ""
	for i := range list {
		b := &list[i]
		if b.Open {
			atLeast = "at least "
			visible.Fprintf(t, "%s\t%s\tas many as are answered\t\t\t\t\n", b.Stage, b.Work)
			continue
		}
		cost := b.Cost(listPrices)
		total += cost
		visible.Fprintf(t, "%s\t%s\t%.0f\t%.0f\t%.0f\t%.4f\t\n", b.Stage, b.Work, b.Total(), b.Sent, b.Received, cost)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	visible.Fprintf(out, "cost: %s%.4f, at %g for 1000 writes, %g for 1000 reads, %g for a GB received; storage not "+
		"counted\n",
		atLeast, total*float64(times), listPrices.Write, listPrices.Read, listPrices.Received)
	return nil
}

// writeObjectBudgets prints the budgets of a Benchmark's object workloads.
func writeObjectBudgets(out io.Writer, list []plan.ObjectBudget) error {
	for _, b := range list {
		switch {
		case b.Open:
			visible.Fprintf(out, "%s would send, each time its rate triggers it:\n", b.Action)
		case b.Times != 1:
			visible.Fprintf(out, "%s would send, each of %d times:\n", b.Action, b.Times)
		default:
			visible.Fprintf(out, "%s would send:\n", b.Action)
		}
		if err := writeBudgets(out, budgetsOf(&b), max(1, b.Times)); err != nil {
			return err
		}
	}
	return nil
}
