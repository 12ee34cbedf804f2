package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/catalog"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
)

func newList(s *streams) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "list [DIR...]",
		Short: "List the bundles and studies beneath directories",
		Long: `Lists the bundles and studies in and beneath directories, by default the current one:
name, run, start, engine, state, objectives, validity flags and duration. What cannot be
read is listed with the reason.`,
		Example: `  cnsbench list
  cnsbench list --output json results`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"."}
			}
			entries, err := catalog.Find(args)
			if err != nil {
				return err
			}
			if output == "json" {
				if entries == nil {
					entries = []catalog.Entry{}
				}
				return writeJSON(s.out, entries)
			}
			return quietPipe(writeEntries(&terminal.Writer{To: s.out}, entries, args))
		},
	}
	outputFlag(c, &output)
	return c
}

// writeEntries prints the entries as a table.
func writeEntries(out io.Writer, entries []catalog.Entry, dirs []string) error {
	if len(entries) == 0 {
		_, err := fmt.Fprintf(out, "no bundle and no study in %s\n", strings.Join(dirs, ", "))
		return err
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "PATH\tNAME\tRUN\tSTARTED\tENGINE\tSTATE\tOBJECTIVES\tFLAGS\tDURATION")
	for _, e := range entries {
		cells := entryCells(&e)
		for i, c := range cells {
			if c == "" {
				c = "–"
			}
			cells[i] = strings.Join(strings.Fields(c), " ") // on one line, in its column
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

func entryCells(e *catalog.Entry) []string {
	if e.Kind == catalog.KindBroken {
		return []string{e.Path, "unreadable: " + e.Error}
	}
	var started, duration string
	if !e.Started.IsZero() {
		started = e.Started.Local().Format("2006-01-02 15:04:05")
	}
	if e.DurationNs != nil {
		duration = time.Duration(*e.DurationNs).Round(100 * time.Millisecond).String()
	}
	name, state := e.Name, e.State
	if e.Kind == catalog.KindStudy {
		name, state = "study "+name, fmt.Sprintf("%d of %s", e.Done, count(e.Trials, "trial"))
		if e.Search != "" {
			name, state = "search of "+e.Search, fmt.Sprintf("%d of %s", e.Done, count(e.Trials, "step"))
		}
	}
	return []string{e.Path, name, e.RunID, started, e.Engine, state, objectives(e.Verdicts), strings.Join(e.Flags, ","),
		duration}
}

// objectives formats the counts of objectives: "2 pass, 1 fail".
func objectives(n map[bundle.Status]int) string {
	var parts []string
	for _, status := range []bundle.Status{bundle.Pass, bundle.Fail, bundle.Weak, bundle.NoData, bundle.Error} {
		if n[status] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[status], status))
		}
	}
	return strings.Join(parts, ", ")
}
