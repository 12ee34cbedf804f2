// Package markdown writes the report of a run as Markdown, for a pull request or an issue.
package markdown

import (
	"io"

	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/report/table"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// maxStalls is how many stalls the report lists.
const maxStalls = 10

// Write writes the main results of a run, its objectives and its tables.
func Write(w io.Writer, s *summary.Summary) error {
	var b visible.Document
	b.Printf("# %s (%s)\n\n", s.Name, s.Badge())
	b.Printf("%s, engine %s, run %s, seed %d\n\n", s.StartedAt.Format("2 January 2006, 15:04:05 -07:00"),
		s.Engine, s.RunID, s.Seed)
	for _, x := range s.Warnings {
		b.Printf("> %s\n\n", x)
	}
	for _, h := range s.Headline {
		b.Printf("- %s\n", h)
	}
	write := func(title visible.Markup, t table.Table) {
		if len(t.Rows) > 0 {
			b.Printf("\n%s\n\n%s", title, t.Markdown())
		}
	}
	write("## Objectives", table.Objectives(s))
	write("## Operations", table.Operations(s))
	for i := range s.Actions {
		if a := &s.Actions[i]; a.N > 0 {
			write(visible.Markdownf("<details><summary>Phases of %s</summary>", a.Name), table.Phases(a))
			b.Printf("\n</details>\n")
		}
	}
	write("## Interference", table.Interference(s))
	write("## Throughput", table.Throughput(s))
	write("## Stalls", stalls(s))
	for i := range s.Workloads {
		x := &s.Workloads[i]
		write(visible.Markdownf("## Workload %s", x.Action), table.Metrics(x))
		write("", table.Values(x))
	}
	write("## Validity", table.Validity(s))
	b.Printf("\nA quantile is shown from the number of values "+
		"that its 95 %% interval needs: p90 from 29, p99 from 299. Figures by cnsbench %s, version %d of the analysis.\n",
		s.Analysis.Program, s.Analysis.Version)
	_, err := b.WriteTo(w)
	return err
}

func stalls(s *summary.Summary) table.Table {
	t := table.Table{Columns: []table.Column{{Name: "at", Number: true}, {Name: "length", Number: true}, {Name: "volume"},
		{Name: "I/O"}, {Name: "operations in progress"}}}
	for _, x := range interference.Longest(s.Stalls, maxStalls) {
		t.Rows = append(t.Rows, []table.Cell{{Text: summary.Instant(x.From)}, {Text: x.Length()},
			{Text: summary.Place(x)}, {Text: x.Direction}, {Text: x.Named()}})
	}
	return t
}
