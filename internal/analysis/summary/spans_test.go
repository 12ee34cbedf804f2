package summary

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/op"
)

// What is gone is the first that goes where pods are made again, and the last
// where an object is deleted.
func TestSpansOfWhatEndsAndBeginsAgain(t *testing.T) {
	tests := []struct {
		name       string
		kind       op.Kind
		milestones []string // each 10 after the one before
		want       []string
	}{
		{"kill", op.Kill, []string{op.Signalled, op.Gone, op.Running, op.Replaced, op.FirstWrite},
			[]string{"started-signalled", "signalled-gone", "gone-running", "gone-replaced", "replaced-firstWrite"}},
		{"hang", op.Kill, []string{op.Signalled, op.Resumed, op.FirstWrite},
			[]string{"started-signalled", "signalled-resumed", "resumed-firstWrite"}},
		{"reattach", op.Reattach, []string{op.Gone, op.Unpublished, op.Unstaged, op.Detached, op.Attached, op.Staged,
			op.Published, op.Running, op.Replaced, op.FirstWrite},
			[]string{"started-gone", "gone-unpublished", "unpublished-unstaged", "unstaged-detached",
				"detached-attached", "attached-staged", "staged-published",
				"published-running", "published-replaced", "replaced-firstWrite"}},
		{"delete", op.Delete, []string{op.Unpublished, op.Unstaged, op.Detached, op.Gone},
			[]string{"started-unpublished", "unpublished-unstaged", "unstaged-detached", "detached-gone"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := &op.Op{Kind: tt.kind, Started: 0}
			for i, m := range tt.milestones {
				o.Milestones = append(o.Milestones, op.Milestone{Name: m, At: op.Time(10 * (i + 1))})
			}
			var got []string
			for _, p := range spansOf(o) {
				got = append(got, fmt.Sprintf("%s-%s", p.from, p.to))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
