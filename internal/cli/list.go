package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/catalog"
	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
	"github.com/cnsbench/cnsbench/internal/visible"
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
  cnsbench list --output csv results`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"."}
			}
			entries, err := catalog.Find(args)
			if err != nil {
				return err
			}
			if entries == nil {
				entries = []catalog.Entry{}
			}
			return s.print(output, entries, func() *table.Table { return entryTable(entries) }, func() error {
				return writeEntries(&visible.Writer{To: s.out}, entries, args, terminalOptions(s.out).Width)
			})
		},
	}
	outputFlag(c, &output, "csv")
	return c
}

// entryTable has a row for each entry.
func entryTable(entries []catalog.Entry) *table.Table {
	columns := []string{"path", "kind", "name", "run_id", "started", "engine", "state", "duration_ns", "trials_done",
		"trials", "flags", "error"}
	statuses := []bundle.Status{bundle.Pass, bundle.Fail, bundle.Weak, bundle.NoData, bundle.Error}
	for _, status := range statuses {
		columns = append(columns, "objectives_"+string(status))
	}
	rows := make([][]any, len(entries))
	for i := range entries {
		e := &entries[i]
		var started, done, trials any
		if !e.Started.IsZero() {
			started = e.Started.Format(time.RFC3339)
		}
		if e.Kind == catalog.KindStudy {
			done, trials = int64(e.Done), int64(e.Trials)
		}
		rows[i] = []any{e.Path, e.Kind, e.Name, e.RunID, started, e.Engine, e.State, known(e.DurationNs), done, trials,
			strings.Join(e.Flags, ";"), e.Error}
		for _, status := range statuses {
			rows[i] = append(rows[i], int64(e.Verdicts[status]))
		}
	}
	return tableOf(rows, columns...)
}

// writeEntries prints the entries as a table; where it is wider than the terminal, an entry has several lines. A width of
// 0 is unlimited.
func writeEntries(out io.Writer, entries []catalog.Entry, dirs []string, width int) error {
	if len(entries) == 0 {
		_, err := visible.Fprintf(out, "no bundle and no study in %s\n", strings.Join(dirs, ", "))
		return err
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 4, 2, ' ', 0)
	visible.Fprintln(w, "PATH\tNAME\tRUN\tSTARTED\tENGINE\tSTATE\tOBJECTIVES\tFLAGS\tDURATION")
	for i := range entries {
		visible.Fprintln(w, strings.Join(entryCells(&entries[i], "–"), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if width > 0 && slices.ContainsFunc(strings.Split(text.String(), "\n"), func(line string) bool {
		return utf8.RuneCountInString(line) > width
	}) {
		text.Reset()
		for i := range entries {
			cells := entryCells(&entries[i], "")
			rest := slices.DeleteFunc(cells[1:], func(c string) bool { return c == "" })
			text.WriteString(cells[0] + "\n" + terminal.Hang("  ", strings.Join(rest, " · "), width))
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// entryCells are the cells of an entry, each on one line; an empty one is none.
func entryCells(e *catalog.Entry, none string) []string {
	cells := entryTexts(e)
	for i, c := range cells {
		cells[i] = cmp.Or(strings.Join(strings.Fields(c), " "), none)
	}
	return cells
}

func entryTexts(e *catalog.Entry) []string {
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
