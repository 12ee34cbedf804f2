package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Study runs a Benchmark many times: once or more with each combination of its factors' values. It is a file for
// cnsbench study; there is no custom resource of this kind.
type Study struct {
	// apiVersion is cnsbench.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// kind is Study.
	Kind string `json:"kind"`
	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec describes the trials.
	Spec StudySpec `json:"spec"`
}

// StudySpec is an experimental design: the trials of a study.
type StudySpec struct {
	// description explains what is measured, and why.
	Description string `json:"description,omitempty"`
	// benchmark is the spec of the Benchmark. Fields that a factor sets may be missing.
	Benchmark runtime.RawExtension `json:"benchmark"`
	// factors have a list of values for each key, in the form of --set, such as vars.storageClass. Each
	// combination of values is a cell of the study.
	Factors map[string][]Var `json:"factors,omitempty"`
	// variants are one more factor. Each of its levels sets several keys at once.
	Variants []StudyVariant `json:"variants,omitempty"`
	// repetitions of each cell; 1 when absent.
	Repetitions int32 `json:"repetitions,omitempty"`
	// responses are the values that are read from each trial: function calls as in objectives, such as p50(pods)
	// or rate(pods). Without them the median latency and the rate of each action are read.
	Responses []string `json:"responses,omitempty"`
	// seed of all random choices. The n-th repetitions of all cells have the same seed.
	Seed *int64 `json:"seed,omitempty"`
	// scales are smaller or larger editions of the study, by name.
	Scales map[string]StudyScale `json:"scales,omitempty"`
}

// StudyVariant is one level of the factor "variant".
type StudyVariant struct {
	// name of the level.
	Name Name `json:"name"`
	// set has a value for each key, in the form of --set.
	Set map[string]Var `json:"set,omitempty"`
}

// StudyScale is an edition of a study. Fields that it does not set are those of the study.
type StudyScale struct {
	// factors whose values differ from the study.
	Factors map[string][]Var `json:"factors,omitempty"`
	// set has a value for each key, in the form of --set.
	Set map[string]Var `json:"set,omitempty"`
	// repetitions of each cell.
	Repetitions int32 `json:"repetitions,omitempty"`
}
