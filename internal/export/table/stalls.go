package table

import (
	"encoding/json"
	"iter"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Stalls returns the table of a run's stalls and, with source "operations", of its times without operations.
func Stalls(b *bundle.Bundle) (*Table, error) {
	s, err := summary.Make(b)
	if err != nil {
		return nil, err
	}
	return &Table{
		Columns: []Column{{"run_id", Text}, {"instance", Text}, {"volume", Text}, {"direction", Text}, {"source", Text},
			{"from_ns", Int}, {"to_ns", Int}, {"length_ns", Int}, {"error_ns", Int}, {"own_ops", Int}, {"other_ops", Int},
			{"ops", Text}},
		Rows: func(yield func([]any, error) bool) {
			for row, err := range StallRows(s) {
				if !yield(append([]any{s.RunID}, row...), err) {
					return
				}
			}
		},
	}, nil
}

// StallRows are the rows of Stalls without the run: the stalls in order of time, then the times without operations.
func StallRows(s *summary.Summary) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for _, x := range slices.Concat(s.Stalls, s.ZeroPeriods) {
			ops, err := json.Marshal(opsOf(&x))
			if !yield([]any{x.Instance, x.Volume, x.Direction, x.Source, instant(x.From), instant(x.To), x.LengthNs,
				x.ErrorNs, int64(x.OwnOps), int64(x.OtherOps), string(ops)}, err) {
				return
			}
		}
	}
}

// opsOf are the numbers of the ops that a stall lists.
func opsOf(x *interference.Stall) []int64 {
	list := []int64{}
	for _, o := range x.Ops {
		list = append(list, o.Op)
	}
	return list
}

func instant(t op.Time) any {
	if !t.Known() {
		return nil
	}
	return int64(t)
}
