package v1alpha1

// Rate is a schedule of triggers. It is independent of the actions that it triggers.
//
// +kubebuilder:validation:ExactlyOneOf=constantRateSpec;poissonRateSpec;rampRateSpec;constantIncreaseDecreaseRateSpec;burstRateSpec;traceRateSpec;lifetimeRateSpec;concurrencySpec;triggerRateSpec
// +kubebuilder:validation:AtMostOneOf=startAfter;startAfterAction
type Rate struct {
	// name that actions use to refer to the rate.
	// +required
	Name Name `json:"name"`

	// startAfter is the start of the rate, counted from the opening of the barrier.
	// +optional
	StartAfter *Duration `json:"startAfter,omitempty"`
	// startAfterAction starts the rate when the first operation of the named action ends.
	// +optional
	StartAfterAction ActionName `json:"startAfterAction,omitempty"`
	// duration of the rate, counted from its start. Without it the rate continues until the end of the run.
	// +optional
	Duration *Duration `json:"duration,omitempty"`
	// limit is the number of triggers after which the rate ends.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Limit *int64 `json:"limit,omitempty"`
	// maxInFlight is the maximum number of concurrent operations of the rate; 0 means no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +kubebuilder:default=10000
	MaxInFlight *int32 `json:"maxInFlight,omitempty"`
	// onSaturation selects what happens to a trigger when maxInFlight operations are in flight: drop records it as
	// dropped, queue starts it late. Both are recorded.
	// +optional
	// +kubebuilder:validation:Enum=drop;queue
	// +kubebuilder:default=drop
	OnSaturation string `json:"onSaturation,omitempty"`

	// constantRateSpec triggers at a fixed interval.
	// +optional
	ConstantRateSpec *ConstantRateSpec `json:"constantRateSpec,omitempty"`
	// poissonRateSpec triggers at random, like many independent users.
	// +optional
	PoissonRateSpec *PoissonRateSpec `json:"poissonRateSpec,omitempty"`
	// rampRateSpec triggers at a rate that changes in stages.
	// +optional
	RampRateSpec *RampRateSpec `json:"rampRateSpec,omitempty"`
	// constantIncreaseDecreaseRateSpec moves the number of objects up and down between two bounds.
	// +optional
	ConstantIncreaseDecreaseRateSpec *ConstantIncreaseDecreaseRateSpec `json:"constantIncreaseDecreaseRateSpec,omitempty"`
	// burstRateSpec triggers several times at once at a fixed interval.
	// +optional
	BurstRateSpec *BurstRateSpec `json:"burstRateSpec,omitempty"`
	// traceRateSpec triggers at the times of a recorded trace.
	// +optional
	TraceRateSpec *TraceRateSpec `json:"traceRateSpec,omitempty"`
	// lifetimeRateSpec triggers once for each object, a random time after its creation.
	// +optional
	LifetimeRateSpec *LifetimeRateSpec `json:"lifetimeRateSpec,omitempty"`
	// concurrencySpec keeps a number of operations in flight: a closed loop.
	// +optional
	ConcurrencySpec *ConcurrencySpec `json:"concurrencySpec,omitempty"`
	// triggerRateSpec triggers when an expression over live metrics becomes true.
	// +optional
	TriggerRateSpec *TriggerRateSpec `json:"triggerRateSpec,omitempty"`
}

// ConstantRateSpec triggers at a fixed interval. The first trigger comes one interval after the start.
//
// +kubebuilder:validation:ExactlyOneOf=interval;perSecond
type ConstantRateSpec struct {
	// interval between triggers.
	// +optional
	Interval *Duration `json:"interval,omitempty"`
	// perSecond is the number of triggers per second; it may be a fraction.
	// +optional
	PerSecond *Number `json:"perSecond,omitempty"`
}

// PoissonRateSpec triggers with independent, exponentially distributed gaps.
type PoissonRateSpec struct {
	// perSecond is the mean number of triggers per second; it may be a fraction.
	// +required
	PerSecond Number `json:"perSecond"`
}

// BurstRateSpec triggers size times at once at a fixed interval. The first burst comes one interval after the
// start.
type BurstRateSpec struct {
	// size is the number of triggers of a burst.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Size int32 `json:"size"`
	// interval between bursts.
	// +required
	Interval Duration `json:"interval"`
}

// TraceRateSpec triggers at the times of a recorded trace. Each record triggers the action that performs its
// operation, on the object that it names.
type TraceRateSpec struct {
	// source is the path of the trace, relative to the Benchmark's file.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Source string `json:"source"`
	// timeScale multiplies the times of the trace: 0.5 replays it twice as fast.
	// +optional
	// +kubebuilder:default=1
	TimeScale *Number `json:"timeScale,omitempty"`
}

// LifetimeRateSpec triggers its actions once for each target object, a random time after the object was created.
// With a deleteSpec these times are lifetimes. Objects that exist when the rate starts are treated as a population
// in equilibrium: each has the remaining lifetime of an object observed at a random instant.
//
// +kubebuilder:validation:ExactlyOneOf=mean;quantiles
type LifetimeRateSpec struct {
	// mean of an exponential distribution.
	// +optional
	Mean *Duration `json:"mean,omitempty"`
	// quantiles of a distribution at equal distances: the first is the minimum, the last is the maximum. Values
	// between them are interpolated linearly.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=1001
	Quantiles []Duration `json:"quantiles,omitempty"`
}

// ConcurrencySpec is a closed loop: it keeps parallelism operations in flight.
type ConcurrencySpec struct {
	// parallelism is the number of operations in flight.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Parallelism int32 `json:"parallelism"`
	// until selects when a slot becomes free: running when the created object is running, ended when the created
	// workload has ended.
	// +optional
	// +kubebuilder:validation:Enum=running;ended
	// +kubebuilder:default=running
	Until string `json:"until,omitempty"`
}

// TriggerRateSpec triggers when an expression over live metrics becomes true, so that I/O can start control
// operations. It triggers once for each crossing: again only after the expression was false and reset, if it is set,
// was true. A value that is missing neither triggers nor resets.
type TriggerRateSpec struct {
	// when is an expression, in the language of objectives, over the last interval: latencies, counts and rates of
	// operations that ended in it, latencies of the canary, and iops and throughput of the workloads' processes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	When string `json:"when"`
	// for is how long when must hold before it triggers; 0 when absent.
	// +optional
	For *Duration `json:"for,omitempty"`
	// reset is an expression that must be true, and when false, before it can trigger again: the lower threshold of a
	// hysteresis. Without it, it can trigger again once when is false.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Reset string `json:"reset,omitempty"`
	// cooldown is the minimum time between two triggers. If when still holds at its end, it triggers then.
	// +optional
	// +kubebuilder:default="10s"
	Cooldown *Duration `json:"cooldown,omitempty"`
	// interval is the time over which metrics are taken, 200ms to 1m.
	// +optional
	// +kubebuilder:default="1s"
	Interval *Duration `json:"interval,omitempty"`
}
