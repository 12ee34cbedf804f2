package workload

import (
	"encoding/json"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// SpecFile is the Benchmark file that a spec is part of. Paths are those of its fields, such as
// spec.actions[0].createObjSpec.objectSpec.
type SpecFile interface {
	// Has says whether the file itself has a field, which defaults do not count for.
	Has(path string) bool
	// Fail reports an error at a field, Warn something doubtful. The hint may be empty.
	Fail(path, hint, format string, args ...any)
	Warn(path, hint, format string, args ...any)
}

// SpecRequest is a createObjSpec whose workload has a spec of its own, such as objectSpec.
type SpecRequest struct {
	Path    string // of Create
	Create  *v1alpha1.CreateObjSpec
	Engine  string // its name, for messages
	Cluster bool   // the workload runs in pods of a Kubernetes cluster
	Seed    uint64
	File    SpecFile
}

// SpecResolver resolves the spec of a workload. It reports problems to the request's File and returns nil
// if there is an error among them. It has no side effects.
type SpecResolver func(SpecRequest) *ResolvedSpec

// ResolvedSpec is all that a plan needs of a workload's spec.
type ResolvedSpec struct {
	Vars    map[string]string // variables of the template
	Metrics []string          // latencies that its output has
	Works   []StoreBudget
	Makes   []json.RawMessage
}

// StoreBudget is what one work of an object workload asks of its store.
type StoreBudget struct {
	Stage, Work string
	// Requests by type of operation, as far as the work's rate or its number of operations bounds them.
	Requests map[string]float64
	Sent     float64 // mean bytes of content
	Received float64
	Open     bool // the number of requests is not bounded
}
