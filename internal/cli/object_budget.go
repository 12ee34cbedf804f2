package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/cnsbench/cnsbench/internal/objectstore/model"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// writeBudgets prints what works would ask of their stores, and what that costs
// if they are carried out so many times.
func writeBudgets(out io.Writer, list []model.Budget, times int64, prices model.Prices) error {
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "stage\twork\trequests\tbytes sent\tbytes received\tcost\t")
	total, atLeast := 0.0, ""
	for i := range list {
		b := &list[i]
		if b.Open {
			atLeast = "at least "
			fmt.Fprintf(t, "%s\t%s\tas many as are answered\t\t\t\t\n", b.Stage, b.Work)
			continue
		}
		cost := b.Cost(prices)
		total += cost
		fmt.Fprintf(t, "%s\t%s\t%.0f\t%.0f\t%.0f\t%.4f\t\n", b.Stage, b.Work, b.Total(), b.Sent, b.Received, cost)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "cost: %s%.4f, at %g for 1000 writes, %g for 1000 reads, %g for a GB received; storage not counted\n",
		atLeast, total*float64(times), prices.Write, prices.Read, prices.Received)
	return nil
}

// writeObjectBudgets prints what the object workloads of a Benchmark would ask.
func writeObjectBudgets(out io.Writer, list []plan.ObjectBudget) error {
	for _, b := range list {
		switch {
		case b.Open:
			fmt.Fprintf(out, "%s would send, each time its rate triggers it:\n", b.Action)
		case b.Times != 1:
			fmt.Fprintf(out, "%s would send, each of %d times:\n", b.Action, b.Times)
		default:
			fmt.Fprintf(out, "%s would send:\n", b.Action)
		}
		if err := writeBudgets(out, b.Works, max(1, b.Times), defaultObjectFlags().prices); err != nil {
			return err
		}
	}
	return nil
}
