package plan

import "math"

// Things that the budget counts.
const (
	volumes   = "volumes"
	pods      = "pods"
	snapshots = "snapshots"
	objects   = "objects"
)

// trigger is the effect of one trigger of an action.
type trigger struct {
	things  map[string]int64 // created objects, by plural name
	ops     int64
	classes map[string]ClassBudget // volumes by StorageClass
}

// sizes returns the number and the bytes of an action's volumes by StorageClass, each
// volume counted a number of times.
func (n *node) sizes(times int64) map[string]ClassBudget {
	classes := map[string]ClassBudget{}
	for i := range n.claims {
		c := &n.claims[i]
		of := classes[className(c)]
		of.Volumes = plus(of.Volumes, times)
		of.Bytes = plus(of.Bytes, mul(times, c.Spec.Resources.Requests.Storage().Value()))
		classes[className(c)] = of
	}
	return classes
}

// mul returns a*b, or math.MaxInt64 on overflow. Neither may be negative.
func mul(a, b int64) int64 {
	if a != 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// plus returns a+b, or math.MaxInt64 on overflow. Neither may be negative.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
