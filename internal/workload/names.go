package workload

import (
	"encoding/base32"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
)

// Labels that every object of a run carries.
const (
	LabelRun      = "cnsbench.dev/run"
	LabelAction   = "cnsbench.dev/action"
	LabelInstance = "cnsbench.dev/instance"
	LabelVolume   = "cnsbench.dev/volume" // claims: the name in the template
	LabelRole     = "cnsbench.dev/role"
)

// maxName is the greatest length of a DNS label.
const maxName = 63

// InstanceName returns the name of an action's index-th instance. It is a function of its
// arguments, so that requests can be repeated, and unique in a run; engines add the run
// where names outlive it.
func InstanceName(action string, index int) string { return fmt.Sprintf("%s-%d", action, index) }

// objectName returns the name of an object of an instance.
func objectName(instance, base string) string {
	name := instance + "-" + base
	if len(name) <= maxName {
		return name
	}
	return strings.TrimRight(name[:maxName-7], "-.") + "-" + hashSuffix(name)
}

var encoding = base32.NewEncoding("abcdefghijkmnpqrstuvwxyz23456789").WithPadding(base32.NoPadding)

// hashSuffix returns six letters and digits of a hash of s.
func hashSuffix(s string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return encoding.EncodeToString(h.Sum(nil))[:6]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
