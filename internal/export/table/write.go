package table

import "io"

// Format is a way to write a table.
type Format string

// The formats.
const (
	CSV     Format = "csv"
	JSON    Format = "json" // one object a line
	Parquet Format = "parquet"
)

// Write writes the table. The error is that of reading the bundle or of w.
func (t *Table) Write(w io.Writer, f Format) error {
	switch f {
	case CSV:
		return t.writeCSV(w)
	case JSON:
		return t.writeJSON(w)
	}
	return t.writeParquet(w)
}
