package kubernetes

import (
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/op"
)

// callsOf keys the RPCs that a proxy on a driver's socket has seen end, by the
// name that a sidecar gave to what is created, or by the driver's handle.
const callsOf subject = "calls of"

// called takes an RPC from a proxy; those in flight are of interest when they end.
func (t *tracker) called(c csiproxy.Call) {
	if !c.End.Known() {
		return
	}
	if c.RPC == "NodePublishVolume" {
		t.nodes.Store(true)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := map[string]bool{"": true}
	for _, name := range []string{c.Name, c.Volume, c.Snapshot, c.Group} {
		if seen[name] {
			continue
		}
		seen[name] = true
		k := callsOf.Key(name)
		if _, known := t.objects[k]; !known {
			t.unasked = append(t.unasked, k)
		}
		t.put(k, &c)
	}
	for len(t.unasked) > keepCalls {
		if o := t.objects[t.unasked[0]]; o != nil && len(o.feeds) == 0 {
			delete(t.objects, t.unasked[0])
		}
		t.unasked = t.unasked[1:]
	}
}

// seesNodes says whether calls of a node service were ever seen, so that others
// are worth waiting for.
func (t *tracker) seesNodes() bool { return t.nodes.Load() }

// keepCalls is of how many things the calls are kept that no op has asked for:
// an op learns the name of its volume after the call, and most calls of a busy
// driver are of others.
const keepCalls = 10000

// rpcs gathers the calls of one op.
type rpcs struct {
	wanted map[string]bool   // RPCs that belong to the op
	since  op.Time           // calls that began before are of earlier ops
	owners map[string]string // name or handle → the loop's name of the object
	calls  []*csiproxy.Call
	seen   map[*csiproxy.Call]bool
}

// The calls of each kind of op.
var (
	bringingCalls = wanted("CreateVolume", "ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume")
	removingCalls = wanted("NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume", "DeleteVolume")
	cuttingCalls  = wanted("CreateSnapshot", "CreateVolumeGroupSnapshot")
	uncutCalls    = wanted("DeleteSnapshot", "DeleteVolumeGroupSnapshot")
	changingCalls = wanted("ControllerExpandVolume", "NodeExpandVolume", "ControllerModifyVolume")
)

func wanted(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

func newRPCs(wanted map[string]bool, since op.Time) *rpcs {
	return &rpcs{wanted: wanted, since: since, owners: map[string]string{}, seen: map[*csiproxy.Call]bool{}}
}

// own follows the calls about something by its name or handle.
func (r *rpcs) own(f *feed, id, object string) {
	if id == "" || r.owners[id] != "" {
		return
	}
	r.owners[id] = object
	f.add(callsOf.Key(id))
}

// see takes a call; false if it is none of the op's.
func (r *rpcs) see(c *csiproxy.Call) (object string, ours bool) {
	if !r.wanted[c.RPC] || r.seen[c] || c.Start+op.Time(c.Err) < r.since {
		return "", false
	}
	for _, id := range []string{c.Name, c.Volume, c.Snapshot, c.Group} {
		if object = r.owners[id]; object != "" {
			break
		}
	}
	r.seen[c] = true
	r.calls = append(r.calls, c)
	return object, true
}

// fill writes the calls to a trace, each with its start and its end; one that
// failed was one more attempt. Where the op has several objects the milestones
// carry their names.
func (r *rpcs) fill(tr *op.Trace, several bool) {
	for _, c := range r.calls {
		suffix := ""
		if object := r.ownerOf(c); several && object != "" {
			suffix = "/" + object
		}
		tr.MarkAt(c.RPC+".start"+suffix, c.Start, c.Err, "csi")
		tr.MarkAt(c.RPC+".end"+suffix, c.End, c.Err, "csi")
		if c.Code != "OK" {
			tr.Attempt()
		}
	}
}

func (r *rpcs) ownerOf(c *csiproxy.Call) string {
	for _, id := range []string{c.Name, c.Volume, c.Snapshot, c.Group} {
		if o := r.owners[id]; o != "" {
			return o
		}
	}
	return ""
}

// failed is how many calls did.
func (r *rpcs) failed() int {
	n := 0
	for _, c := range r.calls {
		if c.Code != "OK" {
			n++
		}
	}
	return n
}

// failures says which calls failed, for people.
func (r *rpcs) failures() string {
	text := ""
	for _, c := range r.calls {
		if c.Code == "OK" {
			continue
		}
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("%s answered %s after %v: %s", c.RPC, c.Code, time.Duration(c.End-c.Start).Round(time.Millisecond), c.Message)
	}
	return text
}
