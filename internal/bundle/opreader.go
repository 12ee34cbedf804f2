package bundle

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/op"
)

// opReader reads ops from the columns of a Parquet file, which is several times as fast as by rows. Its columns are
// those of one row group, in memory that the next one reuses.
type opReader struct {
	columnReader
	brief bool    // without milestones, message and object
	keep  bool    // milestones stay valid
	ring  []batch // each is valid until its turn comes again
	turn  int

	id, episode, instance, attempts   []int64
	intended, started, ended          []op.Time
	action, kind, node, outcome, code []int32
	target, message, object           []string

	// Of the milestones of all rows one after another; those of row i are in [begin[i], begin[i+1]).
	begin        []int
	name, source []int32
	at           []op.Time
	err          []int64
}

// batch is memory for ops and their milestones.
type batch struct {
	ops        []op.Op
	milestones []op.Milestone
}

// columnarOps yields the ops of a Parquet file in its order; brief ones are without milestones, message and object.
func columnarOps(dir bounded.Dir, brief bool) iter.Seq2[op.Op, error] {
	return func(yield func(op.Op, error) bool) {
		for batch, err := range columnarBatches(dir, opReader{brief: brief, keep: true, ring: make([]batch, 1)}) {
			if err != nil {
				yield(op.Op{}, err)
				return
			}
			for i := range batch {
				if !yield(batch[i], nil) {
					return
				}
			}
		}
	}
}

// columnarBatches yields the ops in batches of at most batchRows. r says which fields, and how long a batch is valid;
// the texts of its ops stay so.
func columnarBatches(dir bounded.Dir, r opReader) iter.Seq2[[]op.Op, error] {
	return func(yield func([]op.Op, error) bool) {
		f, p, err := openColumnar(dir)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		r := r // each loop over the ops has its own
		r.columnReader = newColumnReader(f.Name(), p, nil)
		for _, g := range p.RowGroups() {
			if err := r.readGroup(g); err != nil {
				yield(nil, fmt.Errorf("bundle: %s is %w: %w", f.Name(), ErrDamaged, err))
				return
			}
			for from := 0; from < len(r.id); from += batchRows {
				if !yield(r.ops(from, min(from+batchRows, len(r.id))), nil) {
					return
				}
			}
		}
	}
}

// readGroup reads the columns of a row group.
func (r *opReader) readGroup(g parquet.RowGroup) (err error) {
	defer recoverPanic(&err)
	c, rows := &r.columnReader, int(g.NumRows())
	err = errors.Join(
		into(c, g, "id", rows, &r.id, readInts[int64]),
		into(c, g, "episode", rows, &r.episode, readInts[int64]),
		into(c, g, "instance", rows, &r.instance, readInts[int64]),
		into(c, g, "attempts", rows, &r.attempts, readInts[int64]),
		into(c, g, "intended", rows, &r.intended, readInts[op.Time]),
		into(c, g, "started", rows, &r.started, readInts[op.Time]),
		into(c, g, "ended", rows, &r.ended, readInts[op.Time]),
		into(c, g, "action", rows, &r.action, readNames),
		into(c, g, "kind", rows, &r.kind, readNames),
		into(c, g, "node", rows, &r.node, readNames),
		into(c, g, "outcome", rows, &r.outcome, readNames),
		into(c, g, "code", rows, &r.code, readNames),
		into(c, g, "target", rows, &r.target, readTexts))
	if err != nil || r.brief {
		return err
	}
	return errors.Join(
		into(c, g, "message", rows, &r.message, readTexts),
		into(c, g, "object", rows, &r.object, readTexts),
		r.readMilestones(rows, g))
}

// into reads a column of so many values.
func into[T any](r *columnReader, g parquet.RowGroup, column string, rows int, to *[]T,
	read func(*columnReader, parquet.RowGroup, string, []T) ([]T, error)) (err error) {
	if *to, err = read(r, g, column, (*to)[:0]); err == nil && len(*to) != rows {
		err = fmt.Errorf("column %s has %d of %d values", column, len(*to), rows)
	}
	return err
}

// The columns of milestones.
const (
	milestoneName   = "milestones.list.element.name"
	milestoneAt     = "milestones.list.element.at"
	milestoneErr    = "milestones.list.element.err"
	milestoneSource = "milestones.list.element.source"
)

// readMilestones reads the milestones of a row group. A value of one of their columns has the definition level of the
// names if its milestone exists, and one more in the column of instants if that is known.
func (r *opReader) readMilestones(rows int, g parquet.RowGroup) error {
	r.begin, r.at = r.begin[:0], r.at[:0]
	n := 0
	exists := byte(r.levels[milestoneName])
	err := r.pages(g, milestoneName, func(p parquet.Page) error {
		repeated, defined := p.RepetitionLevels(), p.DefinitionLevels()
		for i, level := range repeated {
			if level == 0 {
				r.begin = append(r.begin, n)
			}
			if defined[i] == exists {
				n++
			}
		}
		return nil
	})
	if err == nil && len(r.begin) != rows {
		err = fmt.Errorf("column %s has %d of %d rows", milestoneName, len(r.begin), rows)
	}
	if err != nil {
		return err
	}
	r.begin = append(r.begin, n)
	c := &r.columnReader
	return errors.Join(
		into(c, g, milestoneName, n, &r.name, readNames),
		into(c, g, milestoneSource, n, &r.source, readNames),
		into(c, g, milestoneErr, n, &r.err, readPresent),
		r.readInstants(n, g, exists))
}

func (r *opReader) readInstants(n int, g parquet.RowGroup, exists byte) error {
	err := r.pages(g, milestoneAt, func(p parquet.Page) error {
		data := p.Data()
		values := data.Int64()
		for _, level := range p.DefinitionLevels() {
			switch {
			case level < exists:
			case level == exists:
				r.at = append(r.at, op.Never)
			case len(values) == 0:
				return errors.New("has fewer values than declared")
			default:
				r.at, values = append(r.at, op.Time(values[0])), values[1:]
			}
		}
		return nil
	})
	if err == nil && len(r.at) != n {
		err = fmt.Errorf("column %s has %d of %d values", milestoneAt, len(r.at), n)
	}
	return err
}

// ops makes a batch of the rows [from, to), which refers to no memory of the columns.
func (r *opReader) ops(from, to int) []op.Op {
	b := &r.ring[r.turn]
	r.turn = (r.turn + 1) % len(r.ring)
	if b.ops == nil {
		b.ops = make([]op.Op, batchRows)
	}
	if r.keep {
		b.milestones = nil
	}
	if !r.brief {
		b.milestones = slices.Grow(b.milestones[:0], r.begin[to]-r.begin[from])
	}
	ops, milestones, names := b.ops[:to-from], b.milestones, r.names.list // milestones of all ops one after another
	for k := range ops {
		i, o := from+k, &ops[k]
		*o = op.Op{ID: r.id[i], Episode: r.episode[i], Action: names[r.action[i]], Instance: int(r.instance[i]),
			Kind: op.Kind(names[r.kind[i]]), Target: r.target[i], Node: names[r.node[i]], Intended: r.intended[i],
			Started: r.started[i], Ended: r.ended[i], Attempts: int(r.attempts[i]), Outcome: op.Outcome(names[r.outcome[i]]),
			Code: names[r.code[i]]}
		if r.brief {
			continue
		}
		o.Message, o.Object = r.message[i], r.object[i]
		first := len(milestones)
		for m := r.begin[i]; m < r.begin[i+1]; m++ {
			milestones = append(milestones, op.Milestone{Name: names[r.name[m]], At: r.at[m], Err: r.err[m],
				Source: names[r.source[m]]})
		}
		if n := len(milestones); n > first {
			o.Milestones = milestones[first:n:n]
		}
	}
	return ops
}
