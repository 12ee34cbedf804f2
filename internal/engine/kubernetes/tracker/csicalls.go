package tracker

import (
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/op"
)

// CallsOf keys the finished RPCs of a driver that a proxy saw, by the name in the request or by the driver's
// handle.
const CallsOf Subject = "calls of"

// SeeCall records a finished RPC.
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
		t.publish(CallsOf.Key(name), &c)
	}
}

// SeesNodeCalls says whether a proxy has seen calls of a node service.
func (t *Tracker) SeesNodeCalls() bool { return t.nodeCalls.Load() }

// CSICalls collects the CSI calls of one op.
type CSICalls struct {
	methods map[string]bool   // RPCs of the op
	Since   op.Time           // earlier calls belong to earlier ops
	owners  map[string]string // name or handle to the object's name
	calls   []*csiproxy.Call
	seen    map[*csiproxy.Call]bool
}

// The RPCs of each kind of op.
var (
	ProvisionCalls = methodSet("CreateVolume", "ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume")
	RemovalCalls   = methodSet("NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume",
		"DeleteVolume")
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

// Follow follows the calls with a name or handle.
func (r *CSICalls) Follow(f *Feed, id, object string) {
	if id == "" || r.owners[id] != "" {
		return
	}
	r.owners[id] = object
	f.Add(CallsOf.Key(id))
}

// See records a call. It returns false if the call is not one of the op.
func (r *CSICalls) See(c *csiproxy.Call) (object string, own bool) {
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

// Fill writes the start and end of each call to a trace and counts failed calls as attempts. With several objects
// the milestones carry the object's name.
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

func (r *CSICalls) failed() int {
	n := 0
	for _, c := range r.calls {
		if c.Code != "OK" {
			n++
		}
	}
	return n
}

// Failures describes the failed calls.
func (r *CSICalls) Failures() string {
	text := ""
	for _, c := range r.calls {
		if c.Code == "OK" {
			continue
		}
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("%s answered %s after %v: %s", c.RPC, c.Code,
			time.Duration(c.End-c.Start).Round(time.Millisecond), c.Message)
	}
	return text
}
