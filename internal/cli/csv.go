package cli

import (
	"io"

	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// writeCSV writes a table for --output csv: names of columns end in their unit, or a column "unit" has it.
func writeCSV(w io.Writer, t *table.Table) error {
	return quietPipe(t.Write(&visible.Writer{To: w}, table.CSV))
}

// tableOf is a table of rows in memory.
func tableOf(columns []table.Column, rows [][]any) *table.Table {
	return &table.Table{Columns: columns, Rows: func(yield func([]any, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}}
}

// known is a value for a cell, or nil if it is unknown.
func known[T any](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}
