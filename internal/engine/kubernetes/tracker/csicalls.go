package tracker

import (
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/op"
)

// callsOf keys the RPCs that a proxy on a driver's socket has seen end, by the
// name that a sidecar gave to what is created, or by the driver's handle.
const CallsOf Subject = "calls of"

// called takes an RPC from a proxy; those in flight are of interest when they end.
func (t *Tracker) SeeCall(c csiproxy.Call) {
	if !c.End.Known() {
		return
	}
	if c.RPC == "NodePublishVolume" {
		t.nodeCalls.Store(true)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := map[string]bool{"": true}
	for _, name := range []string{c.Name, c.Volume, c.Snapshot, c.Group} {
		if seen[name] {
			continue
		}
		seen[name] = true
		k := CallsOf.Key(name)
		if _, known := t.objects[k]; !known {
			t.unfollowedCalls = append(t.unfollowedCalls, k)
		}
		t.publish(k, &c)
	}
	for len(t.unfollowedCalls) > maxUnfollowedCalls {
		if o := t.objects[t.unfollowedCalls[0]]; o != nil && len(o.feeds) == 0 {
			delete(t.objects, t.unfollowedCalls[0])
		}
		t.unfollowedCalls = t.unfollowedCalls[1:]
	}
}

// seesNodes says whether calls of a node service were ever seen, so that others
// are worth waiting for.
func (t *Tracker) SeesNodeCalls() bool { return t.nodeCalls.Load() }

// keepCalls is of how many things the calls are kept that no op has asked for:
// an op learns the name of its volume after the call, and most calls of a busy
// driver are of others.
const maxUnfollowedCalls = 10000

// rpcs gathers the calls of one op.
type CSICalls struct {
	methods map[string]bool   // RPCs that belong to the op
	Since   op.Time           // calls that began before are of earlier ops
	owners  map[string]string // name or handle → the loop's name of the object
	calls   []*csiproxy.Call
	seen    map[*csiproxy.Call]bool
}

// The calls of each kind of op.
var (
	ProvisionCalls        = methodSet("CreateVolume", "ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume")
	RemovalCalls          = methodSet("NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume", "DeleteVolume")
	SnapshotCalls         = methodSet("CreateSnapshot", "CreateVolumeGroupSnapshot")
	SnapshotDeletionCalls = methodSet("DeleteSnapshot", "DeleteVolumeGroupSnapshot")
	ClaimUpdateCalls      = methodSet("ControllerExpandVolume", "NodeExpandVolume", "ControllerModifyVolume")
)

func methodSet(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

func newCSICalls(wanted map[string]bool, since op.Time) *CSICalls {
	return &CSICalls{methods: wanted, Since: since, owners: map[string]string{}, seen: map[*csiproxy.Call]bool{}}
}

// own follows the calls about something by its name or handle.
func (r *CSICalls) Follow(f *Feed, id, object string) {
	if id == "" || r.owners[id] != "" {
		return
	}
	r.owners[id] = object
	f.Add(CallsOf.Key(id))
}

// see takes a call; false if it is none of the op's.
func (r *CSICalls) See(c *csiproxy.Call) (object string, ours bool) {
	if !r.methods[c.RPC] || r.seen[c] || c.Start+op.Time(c.Err) < r.Since {
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
func (r *CSICalls) Fill(tr *op.Trace, several bool) {
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

func (r *CSICalls) ownerOf(c *csiproxy.Call) string {
	for _, id := range []string{c.Name, c.Volume, c.Snapshot, c.Group} {
		if o := r.owners[id]; o != "" {
			return o
		}
	}
	return ""
}

// failed is how many calls did.
func (r *CSICalls) failed() int {
	n := 0
	for _, c := range r.calls {
		if c.Code != "OK" {
			n++
		}
	}
	return n
}

// failures says which calls failed, for people.
func (r *CSICalls) Failures() string {
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
