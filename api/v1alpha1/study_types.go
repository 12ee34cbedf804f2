package v1alpha1

import (
	"bytes"
	"encoding/json"

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
	// +optional
	Benchmark runtime.RawExtension `json:"benchmark,omitzero"`
	// objectWorkload is repeated instead of a Benchmark.
	ObjectWorkload *StudyObjectWorkload `json:"objectWorkload,omitempty"`
	// comparedFactor is the key of the factor whose levels are to be compared, such as vars.storageClass, or
	// variant. Without a number of blocks there are as many, over all occasions, as a comparison of each pair of
	// levels needs to be significant at all: 6 for two levels, 7 for three.
	ComparedFactor string `json:"comparedFactor,omitempty"`
	// factors have values for each key, in the form of --set, such as vars.storageClass: a list, or a
	// distribution. Each combination of the values of the lists is a cell of the study. A distribution makes no
	// cells: each block draws one value of it, for all cells.
	Factors map[string]Factor `json:"factors,omitempty"`
	// variants are one more factor. Each of its levels sets several keys at once.
	Variants []StudyVariant `json:"variants,omitempty"`
	// occasions is the planned number of times, such as days, at which the blocks are run; 1 when absent. study run
	// runs the first, study add-occasion each further one.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Occasions int32 `json:"occasions,omitempty"`
	// blocks of each occasion; 1 when absent. A block runs every cell once, in random order.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Blocks int32 `json:"blocks,omitempty"`
	// repetitions is the former name of blocks.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Repetitions int32 `json:"repetitions,omitempty"`
	// aaArm runs some cells twice in each block, under two labels. The ratio of such a pair shows the noise of the
	// study.
	AAArm *StudyAAArm `json:"aaArm,omitempty"`
	// precondition is what is run before the blocks of each occasion.
	Precondition *StudyPrecondition `json:"precondition,omitempty"`
	// responses are the values that are read from each trial: function calls as in objectives, such as p50(pods)
	// or rate(pods). Without responses and metrics the median latency and the rate of each action are read.
	Responses []string `json:"responses,omitempty"`
	// metrics are responses with their margin and direction. They follow the responses.
	Metrics []StudyMetric `json:"metrics,omitempty"`
	// cost has the prices of the resources that trials use, in the form of a file of --prices. They are recorded
	// with the study, so that compare prints what its trials cost.
	// +optional
	Cost *runtime.RawExtension `json:"cost,omitempty"`
	// seed of all random choices. The n-th blocks of all cells have the same seed.
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
	// without are the names of actions that the level leaves out.
	Without []Name `json:"without,omitempty"`
}

// Factor has the values of a factor: a list, or a Distribution.
//
// +kubebuilder:validation:Type=""
type Factor struct {
	// Values of the list.
	Values []Var `json:"-"`
	// Distribution that values are drawn from; nil: Values is used.
	Distribution *Distribution `json:"-"`
}

// UnmarshalJSON reads a list, or the object of a distribution.
func (f *Factor) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		return json.Unmarshal(b, &f.Distribution)
	}
	return json.Unmarshal(b, &f.Values)
}

// MarshalJSON writes what UnmarshalJSON reads.
func (f Factor) MarshalJSON() ([]byte, error) {
	if f.Distribution != nil {
		return json.Marshal(f.Distribution)
	}
	return json.Marshal(f.Values)
}

// Distribution is a distribution of a factor's values.
//
// +kubebuilder:validation:ExactlyOneOf=uniform;loguniform;normal;choice
type Distribution struct {
	// uniform draws numbers from min to max, all equally likely.
	// +optional
	Uniform *DistributionRange `json:"uniform,omitempty"`
	// loguniform draws numbers whose logarithm is uniform from that of min to that of max.
	// +optional
	LogUniform *DistributionRange `json:"loguniform,omitempty"`
	// normal draws from a normal distribution, truncated to its bounds.
	// +optional
	Normal *NormalDistribution `json:"normal,omitempty"`
	// choice draws one of these values.
	// +optional
	Choice []Var `json:"choice,omitempty"`
	// weights are those of the values of choice; without them all are equally likely.
	// +optional
	Weights []Number `json:"weights,omitempty"`
	// integer rounds numbers to integers. Those of a uniform are equally likely.
	// +optional
	Integer bool `json:"integer,omitempty"`
	// suffix is appended to each number, such as k for a block size or Mi for a quantity.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Suffix string `json:"suffix,omitempty"`
}

// DistributionRange has the bounds of a distribution.
type DistributionRange struct {
	// min is the least value.
	// +required
	Min FactorNumber `json:"min"`
	// max is the greatest value.
	// +required
	Max FactorNumber `json:"max"`
}

// NormalDistribution is a truncated normal distribution.
type NormalDistribution struct {
	// mean of the distribution before it is truncated.
	// +required
	Mean FactorNumber `json:"mean"`
	// sd is the standard deviation before the distribution is truncated.
	// +required
	SD Number `json:"sd"`
	// min is the least value.
	// +required
	Min FactorNumber `json:"min"`
	// max is the greatest value.
	// +required
	Max FactorNumber `json:"max"`
}

// FactorNumber is any number.
//
// +kubebuilder:validation:Type=number
type FactorNumber struct {
	Value float64 `json:"-"`
}

// MarshalJSON writes a plain number.
func (n FactorNumber) MarshalJSON() ([]byte, error) { return json.Marshal(n.Value) }

// UnmarshalJSON reads a plain number.
func (n *FactorNumber) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &n.Value) }

// StudyObjectWorkload is an object storage workload as cnsbench object run runs it. Keys of its factors are env.NAME,
// for a variable ${NAME} of the file.
type StudyObjectWorkload struct {
	// file in COSBench's XML, beside the study's file, or suite:NAME.
	// +required
	File string `json:"file"`
	// flags of cnsbench object run without their dashes, such as find-max or scale-workers.
	Flags map[string]Var `json:"flags,omitempty"`
}

// StudyAAArm selects the cells that are run twice in each block.
type StudyAAArm struct {
	// levels of the selected cells, by the key of the factor, or variant. Without levels every cell is selected.
	Levels map[string]Var `json:"levels,omitempty"`
}

// StudyPrecondition is run for each cell before the first block of each occasion. Its results are kept, and are no
// trials of the study.
type StudyPrecondition struct {
	// benchmark is the spec of a Benchmark that brings the storage to the state in which it is measured. Of a
	// cell's values it takes those whose key begins with vars. Without it the study's own Benchmark is run.
	Benchmark *runtime.RawExtension `json:"benchmark,omitempty"`
	// rounds of each cell; 1 when absent. With steadyState this is the least number.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Rounds int32 `json:"rounds,omitempty"`
	// steadyState repeats the rounds of a cell until they are steady.
	SteadyState *StudySteadyState `json:"steadyState,omitempty"`
}

// StudySteadyState is the rule of the SNIA's Performance Test Specification: over the last five rounds, the response's
// range is at most 20 % of its mean, and its least-squares line changes by at most 10 % of the mean.
type StudySteadyState struct {
	// response of each round that must be steady: a call as in objectives, such as iops(fio.write).
	// +required
	Response string `json:"response"`
	// atMost is the number of rounds after which the study goes on without a steady state; 25 when absent.
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=1000
	AtMost int32 `json:"atMost,omitempty"`
}

// StudyMetric is a response that cells are compared by.
type StudyMetric struct {
	// response is a function call as in objectives, such as p50(pods) or rate(pods).
	// +required
	Response string `json:"response"`
	// marginPercent is the least difference that matters, in percent of the value. Without it the analysis chooses
	// one.
	// +optional
	MarginPercent *Number `json:"marginPercent,omitempty"`
	// direction says which values are better. Without it that follows from the function: a lower latency is
	// better, a higher rate is.
	// +optional
	// +kubebuilder:validation:Enum=higher;lower
	Direction string `json:"direction,omitempty"`
}

// StudyScale is an edition of a study. Fields that it does not set are those of the study.
type StudyScale struct {
	// factors whose values differ from the study.
	Factors map[string]Factor `json:"factors,omitempty"`
	// variants that differ from those of the study, by name.
	Variants []StudyVariant `json:"variants,omitempty"`
	// set has a value for each key, in the form of --set.
	Set map[string]Var `json:"set,omitempty"`
	// occasions that are planned.
	Occasions int32 `json:"occasions,omitempty"`
	// blocks of each occasion.
	Blocks int32 `json:"blocks,omitempty"`
	// repetitions is the former name of blocks.
	Repetitions int32 `json:"repetitions,omitempty"`
}
