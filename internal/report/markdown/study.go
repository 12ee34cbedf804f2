package markdown

import (
	"fmt"
	"io"

	"github.com/cnsbench/cnsbench/internal/report/html"
	"github.com/cnsbench/cnsbench/internal/report/table"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// WriteStudy writes the tables and the sentences of the report of a study.
func WriteStudy(w io.Writer, s *html.Study) error {
	var b visible.Document
	b.Printf("# %s (study)\n", s.Name)
	section := func(title visible.Markup, t table.Table) {
		if len(t.Rows) > 0 {
			b.Printf("\n%s\n\n%s", title, t.Markdown())
		}
	}
	cells := table.Table{Columns: columns(s.Factors)}
	cells.Columns = append(cells.Columns, table.Column{Name: "n", Number: true})
	for _, r := range s.Responses {
		cells.Columns = append(cells.Columns, table.Column{Name: r, Number: true})
	}
	for _, r := range s.Rows {
		cells.Rows = append(cells.Rows, row(r.Cells))
	}
	section("## Cells", cells)
	if len(s.Rows) > 0 {
		b.Printf("\nMedian and range of the trials; n: trials.\n")
	}
	if s.Note != "" {
		b.Printf("\n%s\n", s.Note)
	}
	if s.Order != "" {
		b.Printf("\nOrder of trials: %s.\n", s.Order)
	}
	for _, p := range s.Boxes {
		f := p.Figures()
		t := table.Table{Columns: columns(s.Factors)}
		for _, name := range f.Names {
			t.Columns = append(t.Columns, table.Column{Name: name, Number: true})
		}
		for _, r := range f.Rows {
			t.Rows = append(t.Rows, row(r.Levels, r.Cells...))
		}
		section(visible.Markdownf("## Trials: %s", p.Heading()), t)
	}
	for _, c := range s.Causes {
		t := table.Table{Columns: append(columns(s.Factors), table.Column{Name: "n", Number: true},
			table.Column{Name: "components"}, table.Column{Name: "stands out"})}
		for _, r := range c.Rows {
			t.Rows = append(t.Rows, row(r.Levels, fmt.Sprint(r.Trials), r.Times, r.StandsOut))
		}
		section(visible.Markdownf("## What takes the time of %s", c.Action), t)
	}
	for i := range s.Sweeps {
		for _, series := range s.Sweeps[i].Series {
			b.Printf("\n## %s, %s\n\n", s.Sweeps[i].Action, series.Name)
			for _, p := range series.Points {
				b.Printf("- %s\n", p.Sentence)
			}
		}
	}
	_, err := b.WriteTo(w)
	return err
}

func columns(names []string) (list []table.Column) {
	for _, name := range names {
		list = append(list, table.Column{Name: name})
	}
	return list
}

func row(levels []string, more ...string) (cells []table.Cell) {
	for _, text := range append(append([]string{}, levels...), more...) {
		cells = append(cells, table.Cell{Text: text})
	}
	return cells
}
