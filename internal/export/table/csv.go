package table

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// writeCSV writes RFC 4180 CSV with a header. An unknown value is an empty cell.
func (t *Table) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	cells := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		cells[i] = Cell(c.Name)
	}
	if err := out.Write(cells); err != nil {
		return err
	}
	err := t.each(func(row []any) error {
		for i, v := range row {
			cells[i] = format(v)
		}
		return out.Write(cells)
	})
	if err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

func format(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return Cell(v)
	case float64:
		if a := math.Abs(v); a >= 1e-6 && a < 1e15 {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v) // int64, bool
}

// Cell makes a text safe as a cell of a CSV file. A text from a workload or a server that
// begins like a formula gets an apostrophe in front, by which spreadsheets take it as text
// (OWASP, "CSV injection"); control characters, which terminals would obey, are written as
// escapes. Numbers are not texts: a negative one stays.
func Cell(s string) string {
	if strings.ContainsFunc(s, unicode.IsControl) {
		var b strings.Builder
		for _, r := range s {
			if unicode.IsControl(r) {
				q := strconv.QuoteRuneToASCII(r)
				b.WriteString(q[1 : len(q)-1])
				continue
			}
			b.WriteRune(r)
		}
		s = b.String()
	}
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}
