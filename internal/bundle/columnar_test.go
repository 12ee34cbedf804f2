package bundle

import (
	"iter"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/op"
)

// FuzzParquet checks that a damaged or hostile file of ops gives an error or ops, by rows and by columns, and that both
// agree on the number of ops.
func FuzzParquet(f *testing.F) {
	dir := bounded.Dir(f.TempDir())
	for _, n := range []int{0, 1, 40} {
		must(f, writeColumnar(dir, columnarFile, someOps(n)))
		text, err := dir.ReadFile(columnarFile, 1<<20)
		must(f, err)
		f.Add(text)
		f.Add(text[:len(text)/2])
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := bounded.Dir(t.TempDir())
		must(t, dir.WriteFile(columnarFile, text))
		whole, wholeErr := countOps(columnarOps(dir, false))
		brief, briefErr := countOps(columnarOps(dir, true))
		rows := 0
		var columnErr error
		for c, err := range columnarColumns(dir, allColumns) {
			if err != nil {
				columnErr = err
				break
			}
			rows += len(c.ID)
		}
		if wholeErr == nil && (briefErr != nil || brief != whole) {
			t.Errorf("%d ops; without milestones %d, %v", whole, brief, briefErr)
		}
		if wholeErr == nil && (columnErr != nil || rows != whole) {
			t.Errorf("%d ops; by columns %d, %v", whole, rows, columnErr)
		}
	})
}

func someOps(n int) iter.Seq2[op.Op, error] {
	return func(yield func(op.Op, error) bool) {
		for i := range n {
			o := op.Op{ID: int64(i + 1), Action: "a", Kind: op.Snapshot, Outcome: op.OK, Started: op.Time(i), Ended: op.Never,
				Target: "vol-0", Message: "m"}
			if i%2 == 0 {
				o.Milestones = []op.Milestone{{Name: "created", At: op.Time(i), Source: "api"}, {Name: "ready", At: op.Never}}
			}
			if !yield(o, nil) {
				return
			}
		}
	}
}

func countOps(ops iter.Seq2[op.Op, error]) (n int, err error) {
	for _, err := range ops {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
