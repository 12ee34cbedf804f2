package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const volumeLife = `spec:
  actions:
    - {name: vol, rateName: r, then: [snap, back, delback, delsnap, del], createObjSpec: {count: 2, volume: {storageClass: hostdir}}}
    - {name: snap, snapshotSpec: {actionName: vol}}
    - {name: back, restoreSpec: {actionName: snap}}
    - {name: delback, deleteSpec: {actionName: back}}
    - {name: delsnap, deleteSpec: {actionName: snap}}
    - {name: del, deleteSpec: {actionName: vol}}
    - {name: after, rateName: late, snapshotSpec: {actionName: vol, select: newest}}
  rates:
    - {name: r, limit: 10, constantRateSpec: {perSecond: 5}}
    - {name: late, limit: 1, startAfterAction: del, constantRateSpec: {perSecond: 5}}
`

// TestEpisodesAreResolved checks the resolution of an episode and its budget.
func TestEpisodesAreResolved(t *testing.T) {
	p := good(t, Input{}, volumeLife)
	type resolved struct {
		Then    []string
		Chained bool
		Makers  []string
	}
	got := map[string]resolved{}
	for _, a := range p.Actions {
		r := resolved{Then: a.Then, Chained: a.Chained}
		if a.Target != nil {
			r.Makers = a.Target.Makers
		}
		got[a.Name] = r
	}
	want := map[string]resolved{
		"vol":     {Then: []string{"snap", "back", "delback", "delsnap", "del"}},
		"snap":    {Chained: true, Makers: []string{"vol"}},
		"back":    {Chained: true, Makers: []string{"snap"}},
		"delback": {Chained: true, Makers: []string{"back"}},
		"delsnap": {Chained: true, Makers: []string{"snap"}},
		"del":     {Chained: true, Makers: []string{"vol"}},
		"after":   {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// 10 triggers with 2 episodes each. Each episode has one snapshot and one restore.
	if b := p.Budget; b.Volumes != 40 || b.Snapshots != 21 || b.Ops != 20*6+1 {
		t.Errorf("budget %+v", b)
	}
	if p.Rates[1].StartAction != "del" {
		t.Errorf("rate %+v", p.Rates[1])
	}
}

// TestEpisodesThatCannotBe checks the problems for invalid values of then and
// startAfterAction.
func TestEpisodesThatCannotBe(t *testing.T) {
	vol := "{name: vol, rateName: r, then: [%s], createObjSpec: {volume: {storageClass: hostdir}}}"
	snap := "{name: snap, snapshotSpec: {actionName: vol}}"
	limited := "{name: r, limit: 1, constantRateSpec: {perSecond: 5}}"
	tests := []struct{ name, then, more, rates, want string }{
		{"unknown", "snp", snap, limited, `action "snp" not found`},
		{"itself", "vol", snap, limited, `"vol" cannot follow itself`},
		{"twice", "snap, snap", snap, limited, `"snap" follows twice`},
		{"a rate of its own", "snap", "{name: snap, rateName: r, snapshotSpec: {actionName: vol}}", limited,
			"time of its own"},
		{"chains of chains", "snap", "{name: snap, then: [del], snapshotSpec: {actionName: vol}}, {name: del, deleteSpec: {actionName: snap}}", limited, "has actions that follow itself"},
		{"a circle", "snap", snap, "{name: r, limit: 1, startAfterAction: snap, constantRateSpec: {perSecond: 5}}",
			"waits for it"},
		{"an unknown action to wait for", "snap", snap,
			"{name: r, limit: 1, startAfterAction: snp, constantRateSpec: {perSecond: 5}}", `action "snp" not found`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := head + "spec:\n  actions: [" + strings.Replace(vol, "%s", tt.then, 1) + ", " + tt.more +
				"]\n  rates: [" + tt.rates + "]\n"
			_, problems := load(t, Input{Files: []File{{Name: "x.yaml", Data: []byte(text)}}})
			for _, p := range problems {
				if strings.Contains(p.Message, tt.want) {
					return
				}
			}
			t.Errorf("%v, want one about: %s", problems, tt.want)
		})
	}
}
