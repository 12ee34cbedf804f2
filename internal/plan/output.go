package plan

import "k8s.io/apimachinery/pkg/api/resource"

// MaxOutput is the maximum output of workloads that is kept, in bytes; 0: no limit.
type MaxOutput struct{ PerInstance, PerRun int64 }

// maxOutput resolves spec.maxOutput.
func (l *loader) maxOutput() {
	given := l.spec.MaxOutput
	if given == nil {
		return // the schema sets a default
	}
	const path = "spec.maxOutput"
	out := &l.plan.MaxOutput
	out.PerInstance = l.outputBound(path+".perInstance", given.PerInstance)
	out.PerRun = l.outputBound(path+".perRun", given.PerRun)
	if out.PerInstance > out.PerRun && out.PerRun > 0 {
		l.fail(path+".perRun", "raise it, or lower perInstance",
			"%s for all instances is less than %s for one", given.PerRun, given.PerInstance)
	}
}

func (l *loader) outputBound(path string, q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	switch v := q.Value(); {
	case v < minOutput:
		l.fail(path, "such as 256Mi", "%s is less than the least, 64Ki", q)
	case v > maxOutput:
		l.fail(path, "such as 256Mi", "%s is more than the most, 1Ti", q)
	default:
		return v
	}
	return 0
}

// Range of the limits in bytes. Below minOutput, even the normal messages of tools
// would be truncated. A bundle should never reach maxOutput.
const (
	minOutput = 64 << 10
	maxOutput = 1 << 40
)
