package operator

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

const (
	// Finalizer keeps a Benchmark until what its run made is gone.
	Finalizer = "cnsbench.dev/cleanup"

	// labelManaged selects what the operator made, so that it watches nothing else.
	labelManaged = "app.kubernetes.io/managed-by"
	managedBy    = "cnsbench-operator"
	// labelRunner carries the ID of the run that a runner carries out. It is not
	// cnsbench.dev/run, by which the clean-up of that run would find the runner.
	labelRunner = "cnsbench.dev/runner-of"
	labelRole   = "cnsbench.dev/role" // runner, cleanup
	// annotationBenchmark leads from a pod to its Benchmark; a label's value would
	// be too short for some names.
	annotationBenchmark = "cnsbench.dev/benchmark"

	roleRunner  = "runner"
	roleCleanup = "cleanup"
)

// RunID names the run of a Benchmark. It is a function of its UID, so that the
// run can be cleaned up even if its runner never said a word.
func RunID(b *v1alpha1.Benchmark) string { return runID(b.UID) }

func runID(uid types.UID) string {
	sum := sha256.Sum256([]byte(uid))
	return hex.EncodeToString(sum[:4])
}

// longestName leaves room for the suffixes in the 63 bytes of a label, which a
// Job's name becomes on its pods.
const longestName = 63 - 1 - 8 - len("-cleanup")

// runnerName names the runner's Job and ConfigMap.
func runnerName(b *v1alpha1.Benchmark) string {
	name := b.Name
	if len(name) > longestName {
		name = name[:longestName]
	}
	return strings.TrimRight(name, "-.") + "-" + RunID(b)
}

func cleanupName(b *v1alpha1.Benchmark) string { return runnerName(b) + "-cleanup" }
