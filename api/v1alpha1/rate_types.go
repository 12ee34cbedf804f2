package v1alpha1

// Rate says when actions are done. It knows nothing of what they do.
//
// +kubebuilder:validation:ExactlyOneOf=constantRateSpec;poissonRateSpec;rampRateSpec;constantIncreaseDecreaseRateSpec;burstRateSpec;traceRateSpec;lifetimeRateSpec;concurrencySpec;triggerRateSpec
// +kubebuilder:validation:AtMostOneOf=startAfter;startAfterAction
type Rate struct {
	// name by which actions refer to it.
	// +required
	Name Name `json:"name"`

	// startAfter delays the first trigger, counted from the moment at which
	// the barrier opens.
	// +optional
	StartAfter *Duration `json:"startAfter,omitempty"`
	// startAfterAction lets the rate begin when the first operation of this
	// action has ended.
	// +optional
	StartAfterAction ActionName `json:"startAfterAction,omitempty"`
	// duration after which the rate ends, counted from its start. Without it,
	// it goes on to the end of the run.
	// +optional
	Duration *Duration `json:"duration,omitempty"`
	// limit is the number of triggers after which the rate ends.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Limit *int64 `json:"limit,omitempty"`
	// maxInFlight is how many operations of the rate may be under way at once;
	// 0: as many as come.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +kubebuilder:default=10000
	MaxInFlight *int32 `json:"maxInFlight,omitempty"`
	// onSaturation says what becomes of a trigger that meets maxInFlight:
	// recorded as dropped, or started late. Both are in the record.
	// +optional
	// +kubebuilder:validation:Enum=drop;queue
	// +kubebuilder:default=drop
	OnSaturation string `json:"onSaturation,omitempty"`

	// constantRateSpec triggers at a fixed interval.
	// +optional
	ConstantRateSpec *ConstantRateSpec `json:"constantRateSpec,omitempty"`
	// poissonRateSpec triggers at random, as many independent users do.
	// +optional
	PoissonRateSpec *PoissonRateSpec `json:"poissonRateSpec,omitempty"`
	// rampRateSpec triggers at a rate that changes in stages.
	// +optional
	RampRateSpec *RampRateSpec `json:"rampRateSpec,omitempty"`
	// constantIncreaseDecreaseRateSpec goes up and down between two numbers.
	// +optional
	ConstantIncreaseDecreaseRateSpec *ConstantIncreaseDecreaseRateSpec `json:"constantIncreaseDecreaseRateSpec,omitempty"`
	// burstRateSpec triggers several times at once at a fixed interval.
	// +optional
	BurstRateSpec *BurstRateSpec `json:"burstRateSpec,omitempty"`
	// traceRateSpec triggers when a recorded trace did.
	// +optional
	TraceRateSpec *TraceRateSpec `json:"traceRateSpec,omitempty"`
	// lifetimeRateSpec triggers once for each object, some time after it was made.
	// +optional
	LifetimeRateSpec *LifetimeRateSpec `json:"lifetimeRateSpec,omitempty"`
	// concurrencySpec keeps a number of operations under way: a closed loop.
	// +optional
	ConcurrencySpec *ConcurrencySpec `json:"concurrencySpec,omitempty"`
	// triggerRateSpec triggers when an expression becomes true.
	// +optional
	TriggerRateSpec *TriggerRateSpec `json:"triggerRateSpec,omitempty"`
}

// ConstantRateSpec triggers at a fixed interval; the first trigger comes one
// interval after the start.
//
// +kubebuilder:validation:ExactlyOneOf=interval;perSecond
type ConstantRateSpec struct {
	// interval between triggers.
	// +optional
	Interval *Duration `json:"interval,omitempty"`
	// perSecond is the number of triggers in a second; it may be a fraction.
	// +optional
	PerSecond *Number `json:"perSecond,omitempty"`
}

// PoissonRateSpec triggers with independent exponential gaps.
type PoissonRateSpec struct {
	// perSecond is the mean number of triggers in a second; it may be a fraction.
	// +required
	PerSecond Number `json:"perSecond"`
}

// BurstRateSpec triggers size times at once at a fixed interval; the first
// burst comes one interval after the start.
type BurstRateSpec struct {
	// size is the number of triggers at once.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Size int32 `json:"size"`
	// interval between bursts.
	// +required
	Interval Duration `json:"interval"`
}

// TraceRateSpec triggers when a recorded trace did: each record triggers the
// action that does what it says, on the object that it names.
type TraceRateSpec struct {
	// source is the path of the trace, relative to the Benchmark's file.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Source string `json:"source"`
	// timeScale stretches the trace's time: 0.5 plays it twice as fast.
	// +optional
	// +kubebuilder:default=1
	TimeScale *Number `json:"timeScale,omitempty"`
}

// LifetimeRateSpec triggers its actions once for each object that they are aimed
// at, a random time after the object was made: with a deleteSpec, lifetimes.
// Objects that were there when the rate began are taken for a population in
// equilibrium: they live as much longer as one that is met at a random instant.
//
// +kubebuilder:validation:ExactlyOneOf=mean;quantiles
type LifetimeRateSpec struct {
	// mean of an exponential distribution.
	// +optional
	Mean *Duration `json:"mean,omitempty"`
	// quantiles of any distribution, equally spaced: the first is the least
	// lifetime, the last the greatest; straight lines lie between them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=1001
	Quantiles []Duration `json:"quantiles,omitempty"`
}

// ConcurrencySpec is a closed loop: it keeps parallelism operations under way.
type ConcurrencySpec struct {
	// parallelism is how many.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Parallelism int32 `json:"parallelism"`
	// until says when a slot is free again: when what was made runs, or when
	// it has ended (workloads).
	// +optional
	// +kubebuilder:validation:Enum=running;ended
	// +kubebuilder:default=running
	Until string `json:"until,omitempty"`
}

// TriggerRateSpec triggers when an expression becomes true: I/O feeds back on
// control operations.
type TriggerRateSpec struct {
	// when is a CEL expression over running metrics.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	When string `json:"when"`
	// cooldown is the least time between two triggers.
	// +optional
	// +kubebuilder:default="10s"
	Cooldown *Duration `json:"cooldown,omitempty"`
}
