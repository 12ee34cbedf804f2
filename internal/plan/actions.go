package plan

import (
	"reflect"
	"strings"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// actions has a descriptor for each kind, in the order of the documentation.
var actions = []*descriptor{
	&createAction, &snapshotAction, &restoreAction, &cloneAction, &resizeAction, &reattachAction,
	&rolloutAction, &drainAction, &scaleAction, &killAction, &modifyAction, &checkAction, &deleteAction,
}

// describe returns the descriptor of a kind, or nil if there is none.
func describe(kind op.Kind) *descriptor {
	for _, d := range actions {
		if d.kind == kind {
			return d
		}
	}
	return nil
}

// descriptorOf returns the descriptor of the field that an action sets, or nil if it
// sets none. The schema check reports that case.
func descriptorOf(a *v1alpha1.Action) *descriptor {
	fields := reflect.ValueOf(a).Elem()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Type().Field(i).Tag.Get("json"), ",")
		for _, d := range actions {
			if d.field == name && !fields.Field(i).IsNil() {
				return d
			}
		}
	}
	return nil
}

// Complete completes the request q of an op on q.Target. turn returns the number of
// earlier ops of the action on this target; it is called at most once.
func (a *Action) Complete(q *engine.Request, turn func() int64) {
	if d := describe(a.Kind); d != nil && d.request != nil {
		d.request(a, q, turn)
	}
}
