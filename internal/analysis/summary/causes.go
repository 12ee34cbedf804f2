package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/host"
	"github.com/cnsbench/cnsbench/internal/op"
)

// causeContext has what a bundle knows beside its ops: the flags of controllers, and when others competed for CPUs.
// Without a readable environment the flags are not known, which the evidence says.
func causeContext(d *dataset.Data) attribution.Context {
	c := attribution.Context{OneMachine: d.Bundle.Run.OneMachine(), Seed: seed(d.Bundle.Run)}
	if environment, err := d.Bundle.Environment(); err == nil {
		c.Flags = controllerFlags(environment.Engine["limits"])
	}
	machines := map[string]*attribution.Machine{}
	for _, u := range host.Of(d) {
		busy := host.Competition(d, u.Machine)
		machines[u.Machine] = &attribution.Machine{Who: competitors(&u),
			Busy: busy.Within}
	}
	at := machineNames(d)
	c.MachineOf = func(o *op.Op) *attribution.Machine {
		name, ok := at[o.Object]
		if !ok {
			name = cmp.Or(at[o.Target], at[""])
		}
		return machines[name]
	}
	return c
}

// machineNames has the machine of each instance; "" if all are on one.
func machineNames(d *dataset.Data) map[string]string {
	at, all := map[string]string{}, map[string]bool{}
	for _, m := range d.Machines {
		all[m.ID] = true
		if m.Instance == "" && d.Bundle.Run.OneMachine() || len(all) == 1 {
			at[""] = m.ID
		}
	}
	if len(all) > 1 && !d.Bundle.Run.OneMachine() {
		delete(at, "")
	}
	for _, i := range d.Instances {
		for _, s := range i.Starts {
			if s.Machine != "" {
				at[i.Name] = s.Machine
			}
		}
	}
	return at
}

// competitors names what competed for the CPUs of a machine.
func competitors(u *host.Use) string {
	text := fmt.Sprintf("%.2f of %d CPUs on average", u.Other, u.CPUs)
	if len(u.Top) > 0 {
		text += ", mostly " + u.Top[0].Name
	}
	if u.Steal >= 0.01 {
		text += fmt.Sprintf("; other guests of the hypervisor %.2f", u.Steal)
	}
	return text
}

// limitingFlags are the flags that are named as evidence, in their order.
var limitingFlags = []string{"kube-api-qps", "kube-api-burst", "worker-threads", "workers",
	"concurrent-attach-detach-syncs"}

// defaultLimits are the values of flags that are not given: of Kubernetes 1.36, csi-provisioner 6.3 and csi-attacher
// 4.13 (both with csi-lib-utils 0.25), csi-resizer 2.3, csi-snapshotter and snapshot-controller 8.7, as their
// sources have them. Other versions may have others.
var defaultLimits = map[string]map[string]string{
	"csi-provisioner":         {"kube-api-qps": "5", "kube-api-burst": "10", "worker-threads": "100"},
	"csi-attacher":            {"kube-api-qps": "5", "kube-api-burst": "10", "worker-threads": "10"},
	"csi-resizer":             {"kube-api-qps": "5", "kube-api-burst": "10", "workers": "10"},
	"csi-snapshotter":         {"kube-api-qps": "5", "kube-api-burst": "10", "worker-threads": "10"},
	"snapshot-controller":     {"kube-api-qps": "5", "kube-api-burst": "10", "worker-threads": "10"},
	"kube-controller-manager": {"kube-api-qps": "20", "kube-api-burst": "30"},
}

// controllerFlags reads limits of environment.json, which is a text where they are not known.
func controllerFlags(limits any) map[string][]string {
	processes, ok := limits.(map[string]any)
	if !ok {
		return nil
	}
	flags := map[string][]string{}
	for _, p := range processes {
		one, _ := p.(map[string]any)
		name, _ := one["controller"].(string)
		set, _ := one["flags"].(map[string]any)
		var texts []string
		for _, flag := range limitingFlags {
			if value, ok := set[flag].(string); ok {
				texts = append(texts, "--"+flag+"="+value)
			} else if value := defaultLimits[name][flag]; value != "" {
				texts = append(texts, "--"+flag+"="+value+" (default)")
			}
		}
		flags[name] = append(flags[name], strings.Join(texts, " "))
	}
	return flags
}

// closedLoop reports whether ops of an action start when others have ended.
func closedLoop(d *dataset.Data, action string) bool {
	for _, a := range d.Spec.Actions {
		if a.Name != action {
			continue
		}
		return slices.ContainsFunc(d.Spec.Rates, func(r dataset.Rate) bool {
			return r.Name == a.RateName && r.Concurrency != nil
		})
	}
	return false
}
