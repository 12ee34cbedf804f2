package interference

import (
	"encoding/json"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestStallsOverPhases: an I/O of the canary that was pending when its phase
// ended is no stall until the end of the run, since the next phase has a canary of
// its own.
func TestStallsOverPhases(t *testing.T) {
	const ms = op.Time(1e6)
	d := &dataset.Data{Instances: []bundle.Instance{{Name: "w-0", Starts: []op.InstanceStart{
		{Instance: "w-0", Intended: 0, At: 0}, {Instance: "w-0", Intended: 1000 * ms, At: 1001 * ms, Phase: 1}}}}}
	if err := json.Unmarshal([]byte(`{"actions":[{"name":"w","createObjSpec":{"phases":[{"startAfter":"1s"}]}}]}`),
		&d.Spec); err != nil {
		t.Fatal(err)
	}
	c := dataset.Canary{Instance: "w-0", Action: "w", Volume: "v"}
	for at := 10 * ms; at < 2000*ms; at += 10 * ms {
		io := op.CanaryIO{Intended: at, Started: at, Ended: at + ms, Write: true}
		if at == 990*ms {
			io.Ended = op.Never
		}
		c.IOs = append(c.IOs, io)
	}
	d.Canaries = []dataset.Canary{c}
	if got := d.WatchedUntil(&c)(c.IOs[98]); got != 1000*ms {
		t.Errorf("watched until %d, want the end of its phase", got)
	}
	if got := d.WatchedUntil(&c)(c.IOs[150]); got != c.Until() {
		t.Errorf("watched until %d, want the canary's end", got)
	}
	if stalls := Find(d, 2000*ms).Stalls(nil); len(stalls) > 0 {
		t.Errorf("stalls %+v", stalls)
	}
}
