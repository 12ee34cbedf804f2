package dataset

import (
	"cmp"
	"slices"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Failure are the ops of an action that failed for one cause.
type Failure struct {
	Outcome op.Outcome `json:"outcome"`
	Code    string     `json:"code"`
	N       int64      `json:"n"`
	Message string     `json:"message"` // of the first
	FirstOp int64      `json:"firstOp"`
}

// Failures counts ops by the cause of their failure. The zero value is ready to use; it is not safe for concurrent use.
type Failures struct {
	of map[[2]string]*Failure // by outcome and code
}

// Add counts an op that failed.
func (f *Failures) Add(o *op.Op) {
	k := [2]string{string(o.Outcome), o.Code}
	one := f.of[k]
	if one == nil {
		if f.of == nil {
			f.of = map[[2]string]*Failure{}
		}
		one = &Failure{Outcome: o.Outcome, Code: o.Code, Message: o.Message, FirstOp: o.ID}
		f.of[k] = one
	}
	one.N++
}

// List returns the causes, the most frequent one first.
func (f *Failures) List() (list []Failure) {
	for _, one := range f.of {
		list = append(list, *one)
	}
	slices.SortFunc(list, func(x, y Failure) int {
		return cmp.Or(cmp.Compare(y.N, x.N), cmp.Compare(x.FirstOp, y.FirstOp))
	})
	return list
}
