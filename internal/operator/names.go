package operator

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

const (
	// Finalizer keeps a Benchmark until the objects of its run are gone.
	Finalizer = "cnsbench.dev/cleanup"

	// labelManaged selects the objects that the operator created and watches.
	labelManaged = "app.kubernetes.io/managed-by"
	managedBy    = "cnsbench-operator"
	// labelRunner has the ID of a runner's run. It is not cnsbench.dev/run, whose objects the run's clean-up removes.
	labelRunner = "cnsbench.dev/runner-of"
	labelRole   = "cnsbench.dev/role" // runner, cleanup
	// annotationBenchmark names the Benchmark of a pod. The value of a label is too short for some names.
	annotationBenchmark = "cnsbench.dev/benchmark"

	roleRunner  = "runner"
	roleCleanup = "cleanup"
)

// RunID is the ID of a Benchmark's run: a function of its UID, so that the run can be cleaned up without its runner.
func RunID(b *v1alpha1.Benchmark) string { return runID(b.UID) }

func runID(uid types.UID) string {
	sum := sha256.Sum256([]byte(uid))
	return hex.EncodeToString(sum[:4])
}

// maxName leaves room for suffixes in the 63 bytes of a label, which has the Job's name on its pods.
const maxName = 63 - 1 - 8 - len("-cleanup")

// runnerName names the runner's Job and ConfigMap.
func runnerName(b *v1alpha1.Benchmark) string {
	name := b.Name
	if len(name) > maxName {
		name = name[:maxName]
	}
	return strings.TrimRight(name, "-.") + "-" + RunID(b)
}

func cleanupName(b *v1alpha1.Benchmark) string { return runnerName(b) + "-cleanup" }
