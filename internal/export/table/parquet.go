package table

import (
	"fmt"
	"io"
	"reflect"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

// groupRows bounds the memory of writing.
const groupRows = 64 << 10

// goTypes has the Go type of each type of column, from which the library makes its own.
var goTypes = map[Type]reflect.Type{
	Text: reflect.TypeFor[*string](), Int: reflect.TypeFor[*int64](), Float: reflect.TypeFor[*float64](),
	Bool: reflect.TypeFor[*bool](),
}

// schema returns the schema of the table: all columns are optional, texts have dictionaries.
func (t *Table) schema() *parquet.Schema {
	fields := make([]reflect.StructField, len(t.Columns))
	for i, c := range t.Columns {
		tag := c.Name + ",optional"
		if c.Type == Text {
			tag += ",dict,zstd"
		}
		fields[i] = reflect.StructField{Name: "F" + strconv.Itoa(i), Type: goTypes[c.Type],
			Tag: reflect.StructTag("parquet:" + strconv.Quote(tag))}
	}
	return parquet.NewSchema("cnsbench", parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Interface()))
}

// writeParquet writes a Parquet file. An unknown value is null.
func (t *Table) writeParquet(w io.Writer) error {
	out := parquet.NewGenericWriter[any](w, t.schema(), parquet.MaxRowsPerRowGroup(groupRows),
		parquet.DefaultEncodingFor(parquet.Int64, &parquet.DeltaBinaryPacked), parquet.CreatedBy("cnsbench", "1", ""))
	values := make(parquet.Row, len(t.Columns))
	err := t.each(func(row []any) error {
		for i, v := range row {
			values[i] = parquet.ValueOf(v).Level(0, 1, i)
			if v == nil {
				values[i] = parquet.NullValue().Level(0, 0, i)
			}
		}
		_, err := out.WriteRows([]parquet.Row{values})
		return err
	})
	if err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	return nil
}
