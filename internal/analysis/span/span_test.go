package span

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
			for _, p := range Of(o) {
				got = append(got, fmt.Sprintf("%s-%s", p.From, p.To))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A call is within the step that is declared to make it, and of the same volume; what only
// overlaps it is beside it.
func TestParents(t *testing.T) {
	at := func(name string, at op.Time) op.Milestone { return op.Milestone{Name: name, At: at} }
	tests := []struct {
		name       string
		milestones []op.Milestone
		want       map[string]string // span to the one that contains it
	}{
		{"a mount in the start of the sandbox", []op.Milestone{at("scheduled", 10), at("NodePublishVolume.start/a", 20),
			at("NodePublishVolume.end/a", 30), at("sandboxed", 40), at("running", 50)},
			map[string]string{"NodePublishVolume": "sandboxed"}},
		{"a call that ends after the step", []op.Milestone{at("scheduled", 10), at("NodePublishVolume.start/a", 20),
			at("sandboxed", 40), at("NodePublishVolume.end/a", 45)}, map[string]string{}},
		{"a call that no step makes", []op.Milestone{at("scheduled", 10), at("CreateVolume.start/a", 20),
			at("CreateVolume.end/a", 30), at("sandboxed", 40)}, map[string]string{}},
		{"mkfs in a call", []op.Milestone{at("NodeStageVolume.start/a", 20), at("mkfs.start/a", 22),
			at("mkfs.end/a", 30), at("NodeStageVolume.end/a", 40)}, map[string]string{"mkfs": "NodeStageVolume"}},
		{"mkfs of another volume", []op.Milestone{at("NodeStageVolume.start/a", 20), at("mkfs.start/b", 22),
			at("mkfs.end/b", 30), at("NodeStageVolume.end/a", 40)}, map[string]string{}},
		{"volumes beside each other", []op.Milestone{at("acked", 5), at("provisioned/a", 40), at("provisioned/b", 20)},
			map[string]string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spans := Of(&op.Op{Kind: op.Create, Milestones: tt.milestones})
			got := map[string]string{}
			for i, p := range Parents(spans) {
				if p >= 0 {
					got[spans[i].Name] = spans[p].Name
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s\nspans %+v", diff, spans)
			}
		})
	}
}
