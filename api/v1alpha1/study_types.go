package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Study is a Benchmark that is carried out many times: with every combination
// of its factors' values, and again and again. It is a file for `cnsbench study`;
// there is no such resource in a cluster, so that no definition is made of it.
type Study struct {
	// apiVersion is cnsbench.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// kind is Study.
	Kind string `json:"kind"`
	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what to carry out.
	Spec StudySpec `json:"spec"`
}

// StudySpec is a design: which trials there are.
type StudySpec struct {
	// description says for people what is measured, and why.
	Description string `json:"description,omitempty"`
	// benchmark is the spec of the Benchmark. What a factor sets may be missing.
	Benchmark runtime.RawExtension `json:"benchmark"`
	// factors have a list of values each, by what they set: a key as --set takes
	// it, such as vars.storageClass. Every combination is a cell of the study.
	Factors map[string][]Var `json:"factors,omitempty"`
	// variants are one more factor, whose levels set several things at once.
	Variants []StudyVariant `json:"variants,omitempty"`
	// repetitions of each cell; 1 when absent.
	Repetitions int32 `json:"repetitions,omitempty"`
	// responses are what is read from each trial: calls as in objectives, such as
	// p50(pods) or rate(pods). Without them, median latency and rate of each action.
	Responses []string `json:"responses,omitempty"`
	// seed of every random choice: the n-th repetition of each cell has the same.
	Seed *int64 `json:"seed,omitempty"`
	// scales are smaller (or larger) editions of the study, by name.
	Scales map[string]StudyScale `json:"scales,omitempty"`
}

// StudyVariant is one level of the factor "variant".
type StudyVariant struct {
	// name of the level.
	Name Name `json:"name"`
	// set has values by what they set, as --set takes it.
	Set map[string]Var `json:"set,omitempty"`
}

// StudyScale is an edition of a study. What it does not say is as in the study.
type StudyScale struct {
	// factors that have other values.
	Factors map[string][]Var `json:"factors,omitempty"`
	// set has values by what they set, as --set takes it.
	Set map[string]Var `json:"set,omitempty"`
	// repetitions of each cell.
	Repetitions int32 `json:"repetitions,omitempty"`
}
