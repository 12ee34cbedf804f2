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

// maxName is what a name may have to be a DNS label.
const maxName = 63

// InstanceName is the name of what an action makes for the index-th time, so
// that repeating a request is harmless. It is unique in a run; engines whose
// platform outlives a run add the run to what the platform sees.
func InstanceName(action string, index int) string { return fmt.Sprintf("%s-%d", action, index) }

// objectName is the name of an object of an instance.
func objectName(instance, base string) string {
	name := instance + "-" + base
	if len(name) <= maxName {
		return name
	}
	return strings.TrimRight(name[:maxName-7], "-.") + "-" + hashSuffix(name)
}

var encoding = base32.NewEncoding("abcdefghijkmnpqrstuvwxyz23456789").WithPadding(base32.NoPadding)

// hashSuffix is six letters and digits that stand for s.
func hashSuffix(s string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return encoding.EncodeToString(h.Sum(nil))[:6]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
