package bundle

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/op"
)

// columnReader reads columns of a Parquet file without building rows.
type columnReader struct {
	path    string
	names   *names
	leaf    map[string]int // by path
	levels  map[string]int // by path: the definition level of a value
	columns []string       // columns to read; the others stay empty
}

func newColumnReader(path string, p *parquet.File, columns []string) columnReader {
	r := columnReader{path: path, names: newNames(), leaf: map[string]int{}, levels: map[string]int{}, columns: columns}
	for _, c := range p.Schema().Columns() {
		if leaf, ok := p.Schema().Lookup(c...); ok {
			name := strings.Join(c, ".")
			r.leaf[name], r.levels[name] = leaf.ColumnIndex, leaf.MaxDefinitionLevel
		}
	}
	return r
}

// allColumns are the columns of Columns.
var allColumns = []string{"id", "intended", "started", "ended", "action", "kind", "outcome"}

// names numbers strings over all blocks of a bundle.
type names struct {
	list  []string
	index map[string]int32
}

func newNames() *names { return &names{index: make(map[string]int32)} }

func (n *names) id(s string) int32 {
	i, ok := n.index[s]
	if !ok {
		i = int32(len(n.list))
		n.list = append(n.list, s)
		n.index[s] = i
	}
	return i
}

// columnarColumns yields one block per row group, with the wanted columns.
func columnarColumns(dir bounded.Dir, want []string) iter.Seq2[*Columns, error] {
	return func(yield func(*Columns, error) bool) {
		f, p, err := openColumnar(dir)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		r := newColumnReader(f.Name(), p, want)
		var c Columns
		for _, g := range p.RowGroups() {
			if err := r.read(g, &c); err != nil {
				yield(nil, fmt.Errorf("bundle: %s is %w: %w", f.Name(), ErrDamaged, err))
				return
			}
			if !yield(&c, nil) {
				return
			}
		}
	}
}

// read fills c from one row group, reusing its memory.
func (r *columnReader) read(g parquet.RowGroup, c *Columns) (err error) {
	defer recoverPanic(&err)
	times := map[string]*[]op.Time{"intended": &c.Intended, "started": &c.Started, "ended": &c.Ended}
	names := map[string]*[]int32{"action": &c.Action, "kind": &c.Kind, "outcome": &c.Outcome}
	for _, column := range r.columns {
		var n int
		if column == "id" {
			c.ID, err = readInts(r, g, column, c.ID[:0])
			n = len(c.ID)
		} else if into := times[column]; into != nil {
			*into, err = readInts(r, g, column, (*into)[:0])
			n = len(*into)
		} else if into := names[column]; into != nil {
			*into, err = readNames(r, g, column, (*into)[:0])
			n = len(*into)
		}
		if err != nil {
			return err
		}
		if int64(n) != g.NumRows() {
			return fmt.Errorf("column %s has %d of %d rows", column, n, g.NumRows())
		}
	}
	c.Names = r.names.list
	return nil
}

// pages calls f for each page of a column.
func (r *columnReader) pages(g parquet.RowGroup, column string, f func(parquet.Page) error) (err error) {
	i, ok := r.leaf[column]
	if !ok {
		return fmt.Errorf("column %q not found", column)
	}
	pages := g.ColumnChunks()[i].Pages()
	defer func() { err = errors.Join(err, pages.Close()) }()
	for {
		p, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", column, err)
		}
		err = f(p)
		parquet.Release(p)
		if err != nil {
			return fmt.Errorf("column %s: %w", column, err)
		}
	}
}

// readInts appends an integer column to dst; null becomes op.Never.
func readInts[T ~int64](r *columnReader, g parquet.RowGroup, column string, dst []T) ([]T, error) {
	err := r.pages(g, column, func(p parquet.Page) error {
		if p.Type().Kind() != parquet.Int64 {
			return fmt.Errorf("is of type %s, want int64", p.Type())
		}
		data := p.Data()
		values := data.Int64()
		if p.NumNulls() == 0 {
			for _, v := range values {
				dst = append(dst, T(v))
			}
			return nil
		}
		next := 0
		for _, level := range p.DefinitionLevels() {
			if level == 0 {
				dst = append(dst, T(op.Never))
				continue
			}
			if next == len(values) {
				return errors.New("has fewer values than declared")
			}
			dst = append(dst, T(values[next]))
			next++
		}
		return nil
	})
	return dst, err
}

// readPresent appends the values of an integer column that are not null.
func readPresent(r *columnReader, g parquet.RowGroup, column string, dst []int64) ([]int64, error) {
	err := r.pages(g, column, func(p parquet.Page) error {
		data := p.Data()
		dst = append(dst, data.Int64()...)
		return nil
	})
	return dst, err
}

// readTexts appends a column of texts that seldom repeat. Those of a page share memory.
func readTexts(r *columnReader, g parquet.RowGroup, column string, dst []string) ([]string, error) {
	err := r.pages(g, column, func(p parquet.Page) error {
		data := p.Data()
		bytes, ends := data.ByteArray()
		text := string(bytes)
		for i := 1; i < len(ends); i++ {
			dst = append(dst, text[ends[i-1]:ends[i]])
		}
		return nil
	})
	return dst, err
}

// readNames appends a column of names, as numbers, to dst.
func readNames(r *columnReader, g parquet.RowGroup, column string, dst []int32) ([]int32, error) {
	err := r.pages(g, column, func(p parquet.Page) error {
		d := p.Dictionary()
		if d == nil {
			return r.plainNames(p, &dst)
		}
		number := make([]int32, d.Len())
		for i := range number {
			number[i] = r.names.id(d.Index(int32(i)).String())
		}
		data := p.Data()
		for _, i := range data.Int32() {
			if i < 0 || int(i) >= len(number) {
				return fmt.Errorf("refers to entry %d of a dictionary of %d", i, len(number))
			}
			dst = append(dst, number[i])
		}
		return nil
	})
	return dst, err
}

// plainNames reads a page without a dictionary.
func (r *columnReader) plainNames(p parquet.Page, dst *[]int32) error {
	values := make([]parquet.Value, p.NumValues())
	n, err := p.Values().ReadValues(values)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, v := range values[:n] {
		if v.IsNull() { // of a row without milestones
			continue
		}
		*dst = append(*dst, r.names.id(v.String()))
	}
	return nil
}

// blocks collects ops from segments into Columns.
func blocks(ops iter.Seq2[op.Op, error]) iter.Seq2[*Columns, error] {
	return func(yield func(*Columns, error) bool) {
		names, c := newNames(), &Columns{}
		for o, err := range ops {
			if err != nil {
				yield(nil, err)
				return
			}
			c.ID = append(c.ID, o.ID)
			c.Intended = append(c.Intended, o.Intended)
			c.Started = append(c.Started, o.Started)
			c.Ended = append(c.Ended, o.Ended)
			c.Action = append(c.Action, names.id(o.Action))
			c.Kind = append(c.Kind, names.id(string(o.Kind)))
			c.Outcome = append(c.Outcome, names.id(string(o.Outcome)))
			c.Names = names.list
			if c.Len() == rowsPerGroup {
				if !yield(c, nil) {
					return
				}
				c = &Columns{}
			}
		}
		if c.Len() > 0 {
			yield(c, nil)
		}
	}
}
