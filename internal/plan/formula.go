package plan

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan/rate"
)

// formula takes a rate whose API type says itself when its triggers are due.
func (l *loader) formula(path string, r *v1alpha1.Rate, out *Rate) {
	fields := reflect.ValueOf(r).Elem()
	for i := range fields.NumField() {
		f, ok := fields.Field(i).Interface().(rate.Formula)
		if !ok || fields.Field(i).IsNil() {
			continue
		}
		name, _, _ := strings.Cut(fields.Type().Field(i).Tag.Get("json"), ",")
		path += "." + name
		if checked, ok := f.(interface {
			Wrong() (field, problem string)
		}); ok {
			if field, problem := checked.Wrong(); problem != "" {
				l.fail(path+"."+field, "", "%s", problem)
				return
			}
		}
		out.Schedule = rate.Closed{Formula: f}
		return
	}
}

// directions checks that a rate which counts up and down has actions for both.
func (l *loader) directions(order []*info) {
	for i := range l.spec.Rates {
		r := &l.spec.Rates[i]
		if r.ConstantIncreaseDecreaseRateSpec == nil {
			continue
		}
		makes, removes := false, false
		for _, n := range order {
			if n.out.Rate == string(r.Name) {
				makes = makes || n.out.Way() == rate.Up
				removes = removes || n.out.Way() == rate.Down
			}
		}
		if makes != removes {
			l.fail(fmt.Sprintf("spec.rates[%d]", i), "one action that makes things and one with a deleteSpec, both with this rateName",
				"the number of objects could only go one way")
		}
	}
}

// Way is the direction in which a rate that counts objects must go to trigger
// the action.
func (a *Action) Way() rate.Way {
	switch a.Kind {
	case op.Create, op.Snapshot, op.Restore, op.Clone:
		return rate.Up
	case op.Delete:
		return rate.Down
	}
	return rate.NoWay
}

// ends says whether the schedule itself has an end.
func (r *Rate) ends() bool {
	c, ok := r.Schedule.(rate.Ending)
	if !ok {
		return false
	}
	_, ended := c.Count(0)
	return ended
}
