package bundle

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/op"
)

// FuzzAppendOp checks that the encoder produces the same bytes as package json.
func FuzzAppendOp(f *testing.F) {
	f.Add(int64(1), int64(2), int64(op.Never), "fio-0", `said "no" <&> \ `+"\n\x00\x7f", 2)
	f.Add(int64(-1), int64(0), int64(5), "größe \u2028 \xff", "", 0)
	f.Add(int64(7), int64(op.Never), int64(op.Never), "", "DEL \x7f", -1)
	f.Fuzz(func(t *testing.T, id, at, end int64, target, message string, milestones int) {
		o := op.Op{ID: id, Episode: at, Action: target, Instance: int(end), Kind: op.Kind(message), Target: target,
			Node:     message,
			Intended: op.Time(at), Started: op.Time(at), Ended: op.Time(end), Attempts: int(id), Outcome: op.OK, Code: message, Message: message, Object: target}
		if milestones >= 0 {
			o.Milestones = []op.Milestone{}
		}
		for i := range min(milestones, 10) {
			o.Milestones = append(o.Milestones, op.Milestone{Name: target, At: op.Time(at), Err: int64(i),
				Source: message})
		}
		want, err := json.Marshal(&o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(appendOp(nil, &o))); diff != "" {
			t.Error(diff)
		}
	})
}
