//go:build e2e

package e2e

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestStorms checks runs on a driver half of whose calls fail, and on one that answers nothing for ten minutes, by the
// driver's log: an op succeeded if all of its calls did, and the run ends in time and leaves nothing.
func TestStorms(t *testing.T) {
	for _, tt := range []struct{ name, inject, final string }{
		{"half of the calls are to be repeated", `inject: "rpcs: {'*': {error: 50% UNAVAILABLE}}"`, ""},
		{"half of the calls fail after their work", `inject: "rpcs: {'*': {error: 50% INTERNAL, when: after}}"`, "Internal"},
		{"no answer for ten minutes", `inject: "windows: [{after: 1s, for: 10m, since: first}]"`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			_, after, _ := strings.Cut(churn, "volumeSize: 64Mi}}}\n") // without the workload, which would end the set-up
			text := head + "spec:\n  runtime: 3s\n  gracePeriod: 3s\n  actions:\n" + after
			began := time.Now()
			r := b.bench(text+class("hostdir", tt.inject)).wants(t, 0)
			if took := time.Since(began); took > 3*time.Minute {
				t.Errorf("the run took %v", took)
			}
			s, ops := b.readable(b.bundle())
			if s.State != "complete" || !s.Complete {
				t.Errorf("state %q\n%v", s.State, r)
			}
			calls := callsOf(t, filepath.Join(b.bundle(), "raw", "driver", "hostdir", "truth.jsonl"))
			b.agrees(ops, calls, time.Now())
			want, got := map[string]int{}, map[string]int{}
			answered := map[string]int64{} // calls by snapshot
			for _, c := range calls {
				if c.RPC == "CreateSnapshot" && c.Code != "Canceled" {
					want[c.Code]++
					answered[withoutRun(c.Name)]++
				}
			}
			for _, o := range ops {
				name := o.Action + "-" + strconv.FormatInt(o.Instance, 10)
				switch {
				case o.Kind != "snapshot" || o.Started == nil || o.Outcome == "censored":
				case o.Attempts != answered[name] && !strings.Contains(tt.name, "no answer"):
					t.Errorf("%s: %d attempts, the driver answered %d calls", name, o.Attempts, answered[name])
				case o.Outcome == "ok":
					got["OK"]++
				default:
					got[o.Code]++
				}
			}
			t.Logf("snapshots by the driver %v, by the bundle %v", want, got)
			if want["OK"] == 0 || got["OK"] != want["OK"] {
				t.Errorf("%d snapshots succeeded by the bundle, %d by the driver", got["OK"], want["OK"])
			}
			if tt.final != "" && (want[tt.final] == 0 || got[tt.final] != want[tt.final]) {
				t.Errorf("%s: %d snapshots by the bundle, %d by the driver", tt.final, got[tt.final], want[tt.final])
			}
			for _, a := range s.Actions {
				sum := 0
				for _, n := range a.Outcomes {
					sum += n
				}
				if sum != a.N {
					t.Errorf("action %s: %d ops, by outcome %v", a.Name, a.N, a.Outcomes)
				}
			}
			b.clean()
		})
	}
}
