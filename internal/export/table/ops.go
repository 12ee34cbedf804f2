package table

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// opColumns are the columns of every table of ops, before those of milestones.
var opColumns = []Column{
	{"run_id", Text}, {"op", Int}, {"episode", Int}, {"action", Text}, {"instance", Int}, {"kind", Text},
	{"target", Text}, {"object", Text}, {"node", Text}, {"outcome", Text}, {"code", Text}, {"message", Text},
	{"attempts", Int}, {"intended_ns", Int}, {"started_ns", Int}, {"ended_ns", Int}, {"response_ns", Int},
	{"service_ns", Int}, {"lateness_ns", Int},
}

// maxMilestones limits the columns.
const maxMilestones = 512

// Ops returns the table of a bundle's ops: one row an op, in the order of the bundle, with a
// column at_NAME_ns for each milestone. A milestone that an op has several times (retries,
// volumes) has the first instant of a call's start, else the last. It reads all ops twice.
func Ops(b *bundle.Bundle) (*Table, error) { return opsTable(b, b.Ops()) }

// OpsOf is Ops for the ops of the given actions.
func OpsOf(b *bundle.Bundle, actions map[string]bool) (*Table, error) {
	return opsTable(b, func(yield func(op.Op, error) bool) {
		for o, err := range b.Ops() {
			if (err != nil || actions[o.Action]) && !yield(o, err) {
				return
			}
		}
	})
}

func opsTable(b *bundle.Bundle, ops iter.Seq2[op.Op, error]) (*Table, error) {
	index := map[string]int{} // of milestones
	columns := slices.Clone(opColumns)
	for o, err := range ops {
		if err != nil {
			return nil, err
		}
		for _, m := range o.Milestones {
			name := base(m.Name)
			if _, known := index[name]; known {
				continue
			}
			if len(index) == maxMilestones {
				return nil, fmt.Errorf("the ops of %s have more than %d kinds of milestones, which are too many columns: "+
					"use cnsbench show --events", b.Dir, maxMilestones)
			}
			index[name] = len(columns)
			columns = append(columns, Column{unused(columns, columnName(name)), Int})
		}
	}
	return &Table{Columns: columns, Rows: func(yield func([]any, error) bool) {
		row := make([]any, len(columns))
		for o, err := range ops {
			if err == nil {
				fill(row, b.Run.ID, &o, index)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}}, nil
}

func base(milestone string) string {
	name, _, _ := strings.Cut(milestone, "/")
	return name
}

// columnName makes a name that all formats accept.
func columnName(milestone string) string {
	return "at_" + strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, milestone) + "_ns"
}

// unused returns a name that no column has, ignoring case as databases do.
func unused(columns []Column, name string) string {
	free := name
	for n := 2; slices.ContainsFunc(columns, func(c Column) bool { return strings.EqualFold(c.Name, free) }); n++ {
		free = fmt.Sprintf("%s_%d", name, n)
	}
	return free
}

func fill(row []any, runID string, o *op.Op, index map[string]int) {
	clear(row)
	known := func(ns int64, ok bool) any {
		if !ok {
			return nil
		}
		return ns
	}
	n := copy(row, []any{runID, o.ID, o.Episode, o.Action, int64(o.Instance), string(o.Kind), o.Target, o.Object, o.Node,
		string(o.Outcome), o.Code, o.Message, int64(o.Attempts), known(int64(o.Intended), o.Intended.Known()),
		known(int64(o.Started), o.Started.Known()), known(int64(o.Ended), o.Ended.Known())})
	row[n], row[n+1], row[n+2] = known(o.Response()), known(o.Service()), known(o.Lateness())
	for _, m := range o.Milestones {
		name := base(m.Name)
		i := index[name]
		if !m.At.Known() || strings.HasSuffix(name, ".start") && row[i] != nil {
			continue
		}
		row[i] = int64(m.At)
	}
}
