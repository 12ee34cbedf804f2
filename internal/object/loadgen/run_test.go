package loadgen

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
)

// A run that ends for another reason than that somebody asked has failed, and it
// cleans up all the same.
func TestEndedByACause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("the disk is full")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(full) })
		main := stageOf(model.Work{Name: "main", Workers: 2, Runtime: time.Hour, Ops: []model.Op{reads(100)}})
		clean := stageOf(model.Work{Name: "c", Kind: model.Dispose, Workers: 1,
			Ops: []model.Op{{Type: model.RemoveContainer, Name: "dispose",
				Containers: selector.Spec{Kind: selector.Range, Low: 1, High: 2}}}})
		r, _ := run(ctx, &fake{takes: always(10 * time.Millisecond)}, main, clean)
		if r.Interrupted || r.Aborted || !errors.Is(r.Err, full) {
			t.Errorf("interrupted %v, aborted %v, %v; want %v", r.Interrupted, r.Aborted, r.Err, full)
		}
		if f := only(t, r.Stages[1]); f.OK != 2 {
			t.Errorf("%d containers were disposed of, want 2", f.OK)
		}
	})
}
