package pod

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local/iolimit"
	"github.com/cnsbench/cnsbench/internal/op"
)

// GroupKind is the kind of the ledger entry of a control group; its name is the group's directory.
const GroupKind = "cgroup"

// limit makes the control group of a pod with an I/O limit, which its containers join when they are started. Init
// containers prepare the volumes and have no limit.
func (h *Host) limit(s *Spec, p *plan) error {
	if s.Limit == nil {
		return nil
	}
	fail := func(err error) error {
		return &engine.Error{Code: "LimitFailed",
			Message: fmt.Sprintf("pod %s: the I/O limit of its tenant could not be set: %v", s.Instance, err), Err: err}
	}
	devices, err := limitedDevices(s.Instance, p.sources)
	if err != nil {
		return fail(err)
	}
	dir := h.Limits.Group(h.RunID, s.Instance)
	if err := h.Ledger.Add(op.LedgerEntry{Kind: GroupKind, Name: dir}); err != nil {
		return fail(err)
	}
	p.group = dir
	if err := h.Limits.Make(dir, devices, *s.Limit); err != nil {
		return fail(err)
	}
	for _, c := range p.containers {
		c.group = dir
	}
	s.Sink.Log(s.Instance, fmt.Sprintf("I/O limit by a control group of version %d on %v: %+v", h.Limits.Version, devices,
		*s.Limit))
	return nil
}

// limitedDevices returns the devices of the claims, each once.
func limitedDevices(instance string, sources map[string]source) ([]string, error) {
	devices := map[string]bool{}
	for _, src := range sources {
		if src.claim == "" {
			continue
		}
		device, err := iolimit.Device(src.path)
		if err != nil {
			return nil, err
		}
		devices[device] = true
	}
	if len(devices) == 0 {
		return nil, fmt.Errorf("%s mounts no volume", instance)
	}
	return slices.Sorted(maps.Keys(devices)), nil
}

// removeGroup removes the control group of a pod whose processes have ended.
func (p *plan) removeGroup(h *Host) {
	if p.group == "" {
		return
	}
	err := iolimit.Remove(p.group)
	if err == nil {
		err = h.Ledger.Done(GroupKind, p.group)
	}
	if err != nil {
		h.Sink.Log("engine", err.Error())
	}
}
