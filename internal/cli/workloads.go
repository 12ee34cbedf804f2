package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/workload"
)

func newWorkloads(s *streams) *cobra.Command {
	c := &cobra.Command{Use: "workloads", Short: "List and show the built-in workloads, make and test your own"}
	c.AddCommand(
		&cobra.Command{Use: "list", Short: "List the built-in workloads and suites", Args: cobra.NoArgs,
			Example: "  cnsbench workloads list",
			RunE:    func(*cobra.Command, []string) error { return listWorkloads(s) }},
		&cobra.Command{Use: "show NAME", Short: "Show the variables and manifests of a workload",
			Args:    cobra.ExactArgs(1),
			Example: "  cnsbench workloads show fio",
			RunE:    func(_ *cobra.Command, args []string) error { return showWorkload(s, args[0]) }},
		newWorkloadsNew(s), newWorkloadsTest(s), newWorkloadsProfile(s),
	)
	return c
}

func listWorkloads(s *streams) error {
	library, err := plan.BuiltIn()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)
	for _, name := range library.Names() {
		e, _ := library.Get(name)
		fmt.Fprintf(w, "%s\t%s\n", name, summaryOf(e))
	}
	for _, name := range suites() {
		fmt.Fprintf(w, "%s%s\t%s\n", suitePrefix, name, describeSuite(name))
	}
	return w.Flush()
}

// summaryOf is the first line of an entry's description.
func summaryOf(e *workload.Entry) string {
	first, _, _ := strings.Cut(strings.TrimSpace(e.Description), "\n")
	return first
}

func showWorkload(s *streams, name string) error {
	library, err := plan.BuiltIn()
	if err != nil {
		return err
	}
	e, ok := library.Get(name)
	if !ok {
		return fmt.Errorf("workload %q not found: want one of %s", name, strings.Join(library.Names(), ", "))
	}
	fmt.Fprintf(s.out, "%s (%s)\n\n%s\n\nvariables:\n", name, e.Origin, strings.TrimSpace(e.Description))
	w := tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)
	for _, v := range e.Variables() {
		value, ok := e.Defaults[v]
		switch {
		case !ok:
			value = "(required)"
		case value == "":
			value = "(empty)"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", v, value, e.Meanings[v], e.Types[v])
	}
	_ = w.Flush()
	for _, p := range e.Parts {
		fmt.Fprintf(s.out, "\n--- %s\n%s\n", p.Key, strings.TrimRight(p.Text, "\n"))
	}
	return nil
}
