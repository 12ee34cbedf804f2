// Package table lays the content of a bundle out as tables (ops, series, figures, stalls) and writes
// them as CSV, JSON lines or Parquet. docs/reference/export.md has the columns. Durations and instants
// are integers in ns; names of columns end in their unit, or a column "unit" has it.
package table

import "iter"

// Type of a column's values.
type Type int

// The types. A value may be nil, which means unknown.
const (
	Text  Type = iota // string
	Int               // int64
	Float             // float64, finite
	Bool              // bool
)

// Column of a table.
type Column struct {
	Name string
	Type Type
}

// Table has rows of one value per column. Rows are read from the bundle while they are
// written: memory does not grow with their number, except that of series and figures.
type Table struct {
	Columns []Column
	// Rows yields rows, each valid until the next.
	Rows iter.Seq2[[]any, error]
}

// each calls f with each row.
func (t *Table) each(f func(row []any) error) error {
	for row, err := range t.Rows {
		if err == nil {
			err = f(row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
