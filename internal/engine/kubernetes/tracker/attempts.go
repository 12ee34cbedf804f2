package tracker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// attempts keeps, over a whole run, what was tried in vain beneath its ops, and
// which creations ended without anybody knowing what became of them. It is safe
// for concurrent use.
type Attempts struct {
	mu        sync.Mutex
	causes    map[string]*cause
	uncertain map[string]Creation // by the name that the driver was given
	handles   map[string]bool     // names whose handle the cluster has
	refused   map[string]bool     // objects that a driver has refused for certain
	unbound   []string            // deleted before they had a volume
}

// cause is why attempts failed.
type cause struct {
	ops, times int
	first      string // object and message
}

// creation is something that a driver was asked to make, without the cluster
// learning whether it did.
type Creation struct {
	RPC, Driver string
	Object      string // of the run
	Times       int
	Message     string
}

func NewAttempts() *Attempts {
	return &Attempts{causes: map[string]*cause{}, uncertain: map[string]Creation{}, handles: map[string]bool{},
		refused: map[string]bool{}}
}

// tried counts the attempts of one op that failed: the calls that a proxy saw
// fail, which are in the trace already, and otherwise as many as the cluster
// speaks of, which are that many at least: a message that stays the same is told
// once.
func (a *Attempts) Count(tr *op.Trace, object string, w Warnings, r *CSICalls) {
	for range w.Count() - r.failed() {
		tr.Attempt()
	}
	found := map[string]*cause{}
	for _, c := range r.calls {
		if c.Code != "OK" {
			tally(found, c.RPC+" answered "+c.Code, 1, object+": "+c.Message)
		}
	}
	if len(found) == 0 {
		for _, x := range w {
			if failedAttemptReasons[x.reason] {
				tally(found, strings.TrimSpace(x.reason+" "+codeIn(x.message)), x.count, object+": "+x.message)
			}
		}
	}
	a.add(found)
}

func tally(in map[string]*cause, why string, times int, first string) {
	if in[why] == nil {
		in[why] = &cause{ops: 1, first: strings.Join(strings.Fields(first), " ")}
	}
	in[why].times += times
}

func (a *Attempts) add(found map[string]*cause) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for why, c := range found {
		if all := a.causes[why]; all != nil {
			all.ops, all.times = all.ops+c.ops, all.times+c.times
		} else {
			a.causes[why] = c
		}
	}
}

// lost notes a creation that has failed when its op ended, so that nobody may
// know of what the driver has made.
func (a *Attempts) CreationFailed(name string, c Creation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case refused(c.Message):
		a.refused[c.Object] = true
	case c.Message != "" && !a.handles[name]:
		a.uncertain[name] = c
	}
}

// deletedUnbound notes an object whose claim went before it had a volume.
func (a *Attempts) DeletedUnbound(object string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.refused[object] {
		a.unbound = append(a.unbound, object)
	}
}

// see learns from the cluster which of what was created has a handle.
func (a *Attempts) See(ev watch.Event) {
	name := ""
	switch o := ev.Object.(type) {
	case *corev1.PersistentVolume:
		if o.Spec.ClaimRef != nil && o.Spec.CSI != nil {
			name = VolumeRequestName(string(o.Spec.ClaimRef.UID))
		}
	case *api.VolumeSnapshotContent:
		if o.Status != nil && o.Status.SnapshotHandle != nil {
			name = SnapshotRequestName(o.Spec.VolumeSnapshotRef.UID)
		}
	}
	if name == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.uncertain, name)
	if ev.Type == watch.Deleted {
		delete(a.handles, name)
	} else {
		a.handles[name] = true
	}
}

// claimAsked and snapshotAsked are what sidecars call a volume and a snapshot
// when they ask the driver for it, unless they were told other prefixes.
func VolumeRequestName(uid string) string   { return "pvc-" + uid }
func SnapshotRequestName(uid string) string { return "snapshot-" + uid }

// refusals are the codes by which a driver says that it has made nothing.
var refusalCodes = map[string]bool{"InvalidArgument": true, "NotFound": true, "AlreadyExists": true, "PermissionDenied": true,
	"FailedPrecondition": true, "OutOfRange": true, "Unimplemented": true, "Unauthenticated": true, "ResourceExhausted": true}

// notAsked are words by which csi-provisioner says that it has not asked the driver,
// because of the source of a volume.
const driverNotCalled = "error getting handle for DataSource"

// refused says whether a message means that the driver has made nothing.
func refused(message string) bool {
	return refusalCodes[codeIn(message)] || strings.Contains(message, driverNotCalled)
}

// unsuited are the codes by which a driver says that it will refuse the same claim
// each time. csi-provisioner itself calls the first of them infeasible.
var permanentCodes = map[string]bool{"InvalidArgument": true, "OutOfRange": true}

// tooSmall are the words by which csi-provisioner refuses a claim that is smaller
// than the volume or the snapshot from which it is to be made.
var tooSmall = []string{
	"must be greater than or equal in size to the specified PVC data source", "is less than the size"}

// hopelessClaim says why a claim that was not provisioned will never be, by the
// message of its Event; nil if it may be. csi-provisioner goes on trying in any case.
func ProvisioningError(claim, reason, message string) *engine.Error {
	if reason != "ProvisioningFailed" {
		return nil
	}
	code := codeIn(message)
	source := strings.Contains(message, driverNotCalled)
	says := func(words string) bool { return strings.Contains(message, words) }
	switch {
	case source && slices.ContainsFunc(tooSmall, says):
		code = "OutOfRange" // as a driver would say
	case source || !permanentCodes[code]:
		return nil
	}
	return &engine.Error{Code: code,
		Message: fmt.Sprintf("claim %s will not be provisioned: %s: %s", claim, reason, strings.TrimSpace(message))}
}

// maxNamed is how many things one finding names.
const maxListed = 20

// findings say what was tried again, and what may be left of it at the drivers
// whose own lists were not to be had.
func (a *Attempts) Findings(listed map[string]bool) []engine.Finding {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []engine.Finding
	for _, why := range slices.Sorted(maps.Keys(a.causes)) {
		c := a.causes[why]
		list = append(list, engine.Finding{Name: "retried", Severity: "info",
			Evidence: fmt.Sprintf("%s, %d times at least in %d ops; the first: %s", why, c.times, c.ops, c.first)})
	}
	var left []string
	for _, name := range slices.Sorted(maps.Keys(a.uncertain)) {
		if c := a.uncertain[name]; !listed[c.Driver] {
			left = append(left, fmt.Sprintf("%s of %s (%s at %s: %s)", c.RPC, name, c.Object, c.Driver, strings.Join(strings.Fields(c.Message), " ")))
		}
	}
	if len(left) > 0 {
		list = append(list, engine.Finding{Name: "orphanPossible", Severity: "warning", Evidence: fmt.Sprintf(
			"%d creations failed without saying that nothing was made, and the cluster never had a handle of it: a driver may keep what nobody will delete. Look for the names: %s",
			len(left), JoinFirst(left))})
	}
	if len(a.unbound) > 0 {
		list = append(list, engine.Finding{Name: "deletedUnbound", Severity: "info", Evidence: fmt.Sprintf(
			"%d claims were deleted before they had a volume: one that was being made for them at that moment comes and goes later, outside of the deletion's time: %s",
			len(a.unbound), JoinFirst(slices.Sorted(slices.Values(a.unbound))))})
	}
	return list
}

// firstNames joins the first names of a list.
func JoinFirst(all []string) string {
	text := strings.Join(all[:min(maxListed, len(all))], "; ")
	if more := len(all) - maxListed; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}
