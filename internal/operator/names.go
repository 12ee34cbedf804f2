package operator

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

const (
	// Finalizer keeps a Benchmark until the objects of its run are removed.
	Finalizer = "cnsbench.dev/cleanup"

	// labelManaged selects the objects that the operator created and watches.
	labelManaged = "app.kubernetes.io/managed-by"
	managedBy    = "cnsbench-operator"
	// labelRunner holds the ID of the run that a runner executes. It differs from cnsbench.dev/run because the clean-up
	// of a run removes all objects with that label.
	labelRunner = "cnsbench.dev/runner-of"
	labelRole   = "cnsbench.dev/role" // runner or cleanup
	// annotationBenchmark holds the name of a pod's Benchmark. It is an annotation because label values are limited to
	// 63 bytes, and names can be longer.
	annotationBenchmark = "cnsbench.dev/benchmark"

	roleRunner  = "runner"
	roleCleanup = "cleanup"
)

// RunID returns the ID of a Benchmark's run. It depends only on the UID, so that the run can be cleaned up without its
// runner.
func RunID(b *v1alpha1.Benchmark) string { return runID(b.UID) }

func runID(uid types.UID) string {
	sum := sha256.Sum256([]byte(uid))
	return hex.EncodeToString(sum[:4])
}

// maxName leaves room for the suffixes in the 63 bytes of a label value: the pods of a Job have a label with its name.
const maxName = 63 - 1 - 8 - len("-cleanup")

// runnerName returns the name of the runner's Job and ConfigMap.
func runnerName(b *v1alpha1.Benchmark) string {
	name := b.Name
	if len(name) > maxName {
		name = name[:maxName]
	}
	return strings.TrimRight(name, "-.") + "-" + RunID(b)
}

func cleanupName(b *v1alpha1.Benchmark) string { return runnerName(b) + "-cleanup" }
