package coordinator

import (
	"errors"
	"testing"

	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
)

// A host that did shares in two rounds has the errors of both in its works.
func TestSumOfSharesKeepsErrors(t *testing.T) {
	spec := &model.Stage{Name: "cleanup", Works: []model.Work{{Name: "w", Kind: model.Cleanup}}}
	first, second := errors.New("first"), errors.New("second")
	h := &hostTally{}
	for _, err := range []error{first, nil, second} {
		s := &share{StageResult: loadgen.StageResult{Name: spec.Name}}
		s.begin(spec, 0)
		s.Works[0].Err = err
		h.shares = append(h.shares, s)
	}
	if err := h.sum(spec); err != nil {
		t.Fatal(err)
	}
	if len(h.Works) != 1 || !errors.Is(h.Works[0].Err, first) || !errors.Is(h.Works[0].Err, second) {
		t.Errorf("works %+v, want one with both errors", h.Works)
	}
}
