package bundle

import (
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/parquet-go/parquet-go"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	// rowsPerGroup bounds the memory of writing; a group is also a block of Columns.
	rowsPerGroup = 64 << 10
	batchRows    = 1024
)

// row is an op in the Parquet file; unknown instants are null. Instants are almost ascending, so delta
// encoding makes them small and fast to read; names repeat, so they have dictionaries.
type row struct {
	ID         int64          `parquet:"id"`
	Episode    int64          `parquet:"episode"`
	Action     string         `parquet:"action,dict"`
	Instance   int64          `parquet:"instance"`
	Kind       string         `parquet:"kind,dict"`
	Target     string         `parquet:"target,zstd"`
	Node       string         `parquet:"node,dict"`
	Intended   *int64         `parquet:"intended,optional"`
	Started    *int64         `parquet:"started,optional"`
	Ended      *int64         `parquet:"ended,optional"`
	Milestones []rowMilestone `parquet:"milestones,list"`
	Attempts   int64          `parquet:"attempts"`
	Outcome    string         `parquet:"outcome,dict"`
	Code       string         `parquet:"code,dict"`
	Message    string         `parquet:"message,zstd"`
	Object     string         `parquet:"object,zstd"`
}

type rowMilestone struct {
	Name   string `parquet:"name,dict"`
	At     *int64 `parquet:"at,optional"`
	Err    int64  `parquet:"err"`
	Source string `parquet:"source,dict"`
}

func nullable(t op.Time) *int64 {
	if !t.Known() {
		return nil
	}
	v := int64(t)
	return &v
}

func toRow(o *op.Op) row {
	r := row{
		ID: o.ID, Episode: o.Episode, Action: o.Action, Instance: int64(o.Instance), Kind: string(o.Kind),
		Target: o.Target, Node: o.Node, Intended: nullable(o.Intended), Started: nullable(o.Started), Ended: nullable(o.Ended),
		Attempts: int64(o.Attempts), Outcome: string(o.Outcome), Code: o.Code, Message: o.Message, Object: o.Object,
	}
	for _, m := range o.Milestones {
		r.Milestones = append(r.Milestones, rowMilestone{Name: m.Name, At: nullable(m.At), Err: m.Err,
			Source: m.Source})
	}
	return r
}

// writeColumnar writes ops to a file as Parquet, in the given order, and syncs. Memory is bounded by one row
// group.
func writeColumnar(dir bounded.Dir, name string, ops iter.Seq2[op.Op, error]) (err error) {
	f, err := dir.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := parquet.NewGenericWriter[row](f,
		parquet.MaxRowsPerRowGroup(rowsPerGroup),
		parquet.DefaultEncodingFor(parquet.Int64, &parquet.DeltaBinaryPacked),
		parquet.DataPageStatistics(true),
		parquet.KeyValueMetadata("cnsbench.format", fmt.Sprint(Version)),
		parquet.CreatedBy("cnsbench", fmt.Sprint(Version), ""))
	batch := make([]row, 0, batchRows)
	for o, err := range ops {
		if err != nil {
			return err
		}
		batch = append(batch, toRow(&o))
		if len(batch) == batchRows {
			if _, err := w.Write(batch); err != nil {
				return fmt.Errorf("write %s: %w", f.Name(), err)
			}
			batch = batch[:0]
		}
	}
	if _, err := w.Write(batch); err != nil {
		return fmt.Errorf("write %s: %w", f.Name(), err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("write %s: %w", f.Name(), err)
	}
	return f.Sync()
}

// recoverPanic converts a panic of the Parquet library, which trusts some numbers of a damaged file, to an
// error.
func recoverPanic(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("does not decode: %v", p)
	}
}

// openColumnar opens the Parquet file of a bundle; the caller closes the os.File.
func openColumnar(dir bounded.Dir) (*os.File, *parquet.File, error) {
	f, err := dir.Open(columnarFile)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	p, err := parseFooter(f, st.Size())
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("bundle: %s is %w: %w", f.Name(), ErrDamaged, err), f.Close())
	}
	return f, p, nil
}

func parseFooter(f *os.File, size int64) (p *parquet.File, err error) {
	defer recoverPanic(&err)
	return parquet.OpenFile(f, size, parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true),
		parquet.ReadBufferSize(256<<10))
}
