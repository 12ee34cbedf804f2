package table

import (
	"bufio"
	"encoding/json"
	"io"
)

// writeJSON writes one object a line, with the columns in order. An unknown value is null.
func (t *Table) writeJSON(w io.Writer) error {
	out := bufio.NewWriterSize(w, 256<<10)
	keys := make([][]byte, len(t.Columns))
	for i, c := range t.Columns {
		key, err := json.Marshal(c.Name)
		if err != nil {
			return err
		}
		keys[i] = append(key, ':')
	}
	var line []byte
	err := t.each(func(row []any) error {
		line = append(line[:0], '{')
		for i, v := range row {
			if i > 0 {
				line = append(line, ',')
			}
			value, err := json.Marshal(v)
			if err != nil {
				return err
			}
			line = append(append(line, keys[i]...), value...)
		}
		_, err := out.Write(append(line, "}\n"...))
		return err
	})
	if err != nil {
		return err
	}
	return out.Flush()
}
