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

// Attempts counts, over a whole run, the failed attempts beneath its ops, and the creations whose outcome is
// unknown. It is safe for concurrent use.
type Attempts struct {
	mu        sync.Mutex
	causes    map[string]*cause
	uncertain map[string]Creation // by the name in the driver's request
	handles   map[string]bool     // names in requests with a known handle
	refused   map[string]bool     // objects whose creation a driver refused
	unbound   []string            // claims deleted before they were bound
}

// cause is a reason of failed attempts.
type cause struct {
	ops, times int
	first      string // object and message
}

// Creation is a request to a driver whose outcome the cluster did not learn.
type Creation struct {
	RPC, Driver string
	Object      string // in the run
	Times       int
	Message     string
}

// NewAttempts returns Attempts without counts.
func NewAttempts() *Attempts {
	return &Attempts{causes: map[string]*cause{}, uncertain: map[string]Creation{}, handles: map[string]bool{},
		refused: map[string]bool{}}
}

// Count counts the failed attempts of an op: the failed calls that a proxy saw, which the trace has already, or
// those that events report. Events report a lower bound, since a repeated message is reported once.
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

// CreationFailed records a creation that had failed when its op ended. name is the name in the request.
func (a *Attempts) CreationFailed(name string, c Creation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case c.Message != "" && !mayHaveCreated(c.Message):
		a.refused[c.Object] = true
	case c.Message != "" && !a.handles[name]:
		a.uncertain[name] = c
	}
}

// DeletedUnbound records an object whose claim was deleted before it was bound.
func (a *Attempts) DeletedUnbound(object string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.refused[object] {
		a.unbound = append(a.unbound, object)
	}
}

// See records the handles that the cluster learns.
func (a *Attempts) See(ev watch.Event) {
	name := ""
	switch o := ev.Object.(type) {
	case *corev1.PersistentVolume:
		if o.Spec.ClaimRef != nil && o.Spec.CSI != nil {
			name = VolumeRequestName(string(o.Spec.ClaimRef.UID))
		}
	case *api.VolumeSnapshotContent:
		if o.Status != nil && o.Status.SnapshotHandle != nil {
			name = SnapshotRequestName(string(o.Spec.VolumeSnapshotRef.UID))
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

// VolumeRequestName returns the name of a volume in a sidecar's request, with the default prefix.
func VolumeRequestName(uid string) string { return "pvc-" + uid }

// SnapshotRequestName is VolumeRequestName for a snapshot.
func SnapshotRequestName(uid string) string { return "snapshot-" + uid }

// unclearCodes are the gRPC codes that do not say whether the driver created anything. By the others it says that it
// did not, and a message without a code comes from a sidecar or controller that did not call it.
var unclearCodes = map[string]bool{"Canceled": true, "Unknown": true, "DeadlineExceeded": true, "Aborted": true,
	"Internal": true, "Unavailable": true, "DataLoss": true}

// driverNotCalled is part of csi-provisioner's message when it did not call the driver because of the volume's
// source.
const driverNotCalled = "error getting handle for DataSource"

// mayHaveCreated says whether the driver may have created what a message says has failed.
func mayHaveCreated(message string) bool {
	return unclearCodes[codeIn(message)] && !strings.Contains(message, driverNotCalled)
}

// permanentCodes are the gRPC codes with which a driver refuses a claim each time. csi-provisioner calls
// InvalidArgument infeasible.
var permanentCodes = map[string]bool{"InvalidArgument": true, "OutOfRange": true}

// tooSmall are parts of csi-provisioner's messages about a claim that is smaller than its source.
var tooSmall = []string{
	"must be greater than or equal in size to the specified PVC data source", "is less than the size"}

// ProvisioningError returns an error if the message of an event means that a claim will never be provisioned,
// although csi-provisioner retries.
func ProvisioningError(claim, reason, message string) *engine.Error {
	if reason != "ProvisioningFailed" {
		return nil
	}
	code := codeIn(message)
	source := strings.Contains(message, driverNotCalled)
	says := func(words string) bool { return strings.Contains(message, words) }
	switch {
	case source && slices.ContainsFunc(tooSmall, says):
		code = "OutOfRange" // the code a driver would use
	case source || !permanentCodes[code]:
		return nil
	}
	return engine.Errorf(code, "claim %s will not be provisioned: %s: %s", claim, reason, strings.TrimSpace(message))
}

// maxListed is how many items a finding lists.
const maxListed = 20

// Findings reports retries and their causes, and objects that may remain at drivers that are not in listed.
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
			left = append(left, fmt.Sprintf("%s of %s (%s at %s: %s)", c.RPC, name, c.Object, c.Driver,
				strings.Join(strings.Fields(c.Message), " ")))
		}
	}
	if len(left) > 0 {
		list = append(list, engine.Finding{Name: "orphanPossible", Severity: "warning", Evidence: fmt.Sprintf(
			"%d creations failed with an unknown outcome, and the cluster has no handle of them: the driver may "+
				"keep objects that will not be deleted. Look for the names: %s",
			len(left), JoinFirst(left))})
	}
	if len(a.unbound) > 0 {
		list = append(list, engine.Finding{Name: "deletedUnbound", Severity: "info", Evidence: fmt.Sprintf(
			"%d claims were deleted before they were bound: a volume in creation at that moment is created and "+
				"deleted outside of the deletion's time: %s",
			len(a.unbound), JoinFirst(slices.Sorted(slices.Values(a.unbound))))})
	}
	return list
}

// JoinFirst joins the first items of a list.
func JoinFirst(all []string) string {
	text := strings.Join(all[:min(maxListed, len(all))], "; ")
	if more := len(all) - maxListed; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}
