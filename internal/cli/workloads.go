package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
	"github.com/cnsbench/cnsbench/internal/workload"
)

func newWorkloads(s *streams) *cobra.Command {
	c := &cobra.Command{Use: "workloads", Short: "List and show the built-in workloads, make and test your own"}
	var output string
	list := &cobra.Command{Use: "list", Short: "List the built-in workloads and suites", Args: cobra.NoArgs,
		Example: "  cnsbench workloads list",
		RunE:    func(*cobra.Command, []string) error { return listWorkloads(s, output) }}
	outputFlag(list, &output, "csv")
	c.AddCommand(list,
		&cobra.Command{Use: "show NAME", Short: "Show the variables and manifests of a workload",
			Args:    cobra.ExactArgs(1),
			Example: "  cnsbench workloads show fio",
			RunE:    func(_ *cobra.Command, args []string) error { return showWorkload(s, args[0]) }},
		newWorkloadsNew(s), newWorkloadsTest(s), newWorkloadsProfile(s),
	)
	return c
}

// libraryItem is a workload or a suite of the library.
type libraryItem struct {
	Kind        string `json:"kind"` // workload, suite
	Name        string `json:"name"` // as an argument of commands
	Description string `json:"description"`
}

func listWorkloads(s *streams, output string) error {
	library, err := plan.BuiltIn()
	if err != nil {
		return err
	}
	var list []libraryItem
	for _, name := range library.Names() {
		e, _ := library.Get(name)
		list = append(list, libraryItem{"workload", name, summaryOf(e)})
	}
	for _, name := range suites() {
		list = append(list, libraryItem{"suite", suitePrefix + name, describeSuite(name)})
	}
	widest := 0
	var rows [][]any
	for _, x := range list {
		widest = max(widest, len(x.Name))
		rows = append(rows, []any{x.Kind, x.Name, x.Description})
	}
	switch output {
	case "json":
		return writeJSON(s.out, list)
	case "csv":
		return writeCSV(s.out, tableOf([]table.Column{{Name: "kind"}, {Name: "name"}, {Name: "description"}}, rows))
	}
	width := terminalOptions(s.out).Width
	for _, x := range list {
		label := fmt.Sprintf("%-*s  ", widest, x.Name)
		if _, err := io.WriteString(s.out, terminal.Hang(label, x.Description, width)); err != nil {
			return quietPipe(err)
		}
	}
	return nil
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
