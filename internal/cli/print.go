package cli

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// outputFlag adds --output text|json: the form of what a command prints. Where it is written is --out.
func outputFlag(c *cobra.Command, to *string, more ...string) {
	c.Flags().StringVar(to, "output", "text", "")
	outputValues(c, to, append([]string{"text", "json"}, more...)...)
}

// forPrograms reports whether a value of --output is a format that programs read.
func forPrograms(output string) bool { return output == "json" || output == "csv" }

// outputValues sets the values of --output. The first is its default.
func outputValues(c *cobra.Command, to *string, values ...string) {
	f := c.Flags().Lookup("output")
	f.Usage = orList(values)
	setValues(f, values...)
	c.PreRunE = func(*cobra.Command, []string) error { return oneOf("--output", *to, values) }
}

// print prints a value in the form of --output: as JSON, as a table, or as text. A closed pipe is no error.
func (s *streams) print(output string, value any, csv func() *table.Table, text func() error) error {
	switch output {
	case "json":
		return quietPipe(writeJSON(s.out, value))
	case "csv":
		return writeCSV(s.out, csv())
	}
	return quietPipe(text())
}

func writeJSON(w io.Writer, v any) error {
	e := newEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// newEncoder writes JSON, with terminal control sequences escaped.
func newEncoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(escaping{w})
	e.SetEscapeHTML(false)
	return e
}

// escaping escapes what an encoder writes, a whole value at a time.
type escaping struct{ to io.Writer }

func (w escaping) Write(b []byte) (int, error) {
	if _, err := io.WriteString(w.to, visible.JSON(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// writeCSV writes a table for --output csv: names of columns end in their unit, or a column "unit" has it.
func writeCSV(w io.Writer, t *table.Table) error {
	return quietPipe(t.Write(&visible.Writer{To: w}, table.CSV))
}

// tableOf is a table of rows in memory, for CSV.
func tableOf(rows [][]any, columns ...string) *table.Table {
	t := &table.Table{Rows: func(yield func([]any, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}}
	for _, name := range columns {
		t.Columns = append(t.Columns, table.Column{Name: name})
	}
	return t
}

// listTable returns a function that makes a table with a row for each element of a list.
func listTable[T any](list []T, row func(*T) []any, columns ...string) func() *table.Table {
	return func() *table.Table {
		rows := make([][]any, len(list))
		for i := range list {
			rows[i] = row(&list[i])
		}
		return tableOf(rows, columns...)
	}
}

// known is a value for a cell, or nil if it is unknown.
func known[T any](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}
