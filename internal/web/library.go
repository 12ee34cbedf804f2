package web

import "github.com/cnsbench/cnsbench/internal/plan"

// Library is what a Benchmark can be built from.
type Library struct {
	Workloads []Workload `json:"workloads"`
	Starts    []Start    `json:"starts"`
	Engines   []string   `json:"engines"`
	Engine    string     `json:"engine" doc:"the default one"`
	// Namespace is that of runs in a cluster which name no other; missing: that of the kubeconfig's context.
	Namespace string `json:"namespace,omitempty"`
	// StorageClasses are those that need no document of their own on engine local.
	StorageClasses []string `json:"storageClasses"`
}

// Start is a file to begin with.
type Start struct {
	Kind        string `json:"kind" enum:"workload,example,suite"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Text        string `json:"text"`
}

// Workload is an entry of the library.
type Workload struct {
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Variables   []Variable `json:"variables"`
}

// Variable is one of a workload.
type Variable struct {
	Name    string `json:"name"`
	Meaning string `json:"meaning,omitempty"`
	// Type is as in the entry, such as "int 1..100"; Kind is its first word, Values are those of an enum, and List allows
	// several values separated by commas.
	Type   string   `json:"type"`
	Kind   string   `json:"kind"`
	Values []string `json:"values,omitempty"`
	List   bool     `json:"list,omitempty"`
	// Default is missing of a variable that must be given.
	Default *string `json:"default,omitempty"`
}

// Check is the answer to whether a text is valid.
type Check struct {
	plan.Validation
	Study bool `json:"study" doc:"the text is a Study, which cnsbench study run runs"`
}
