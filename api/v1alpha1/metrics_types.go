package v1alpha1

// Metrics says what is measured at an interval, besides what the workloads report themselves.
type Metrics struct {
	// level of the samples of workloads' processes. basic: bytes and calls of I/O, CPU time, memory; detailed: also the
	// time that they waited for block I/O, pressure, and how full volumes are; none: no samples.
	// +optional
	// +kubebuilder:validation:Enum=none;basic;detailed
	// +kubebuilder:default=basic
	Level string `json:"level,omitempty"`
	// interval of the samples and of the queries, 100ms to 1m.
	// +optional
	// +kubebuilder:default="1s"
	Interval *Duration `json:"interval,omitempty"`
	// maxOverhead is the CPU time that sampling may take, in percent of one CPU. Above it, a run reads less: the next
	// lower level. Without it, the cost is measured only.
	// +optional
	MaxOverhead *Number `json:"maxOverhead,omitempty"`
	// prometheus takes series of a Prometheus server into the bundle.
	// +optional
	Prometheus *PrometheusSource `json:"prometheus,omitempty"`
}

// PrometheusSource is a server with Prometheus' HTTP API, and what it is asked for at each interval.
type PrometheusSource struct {
	// url of the server, http or https, without /api/v1/query.
	// +required
	// +kubebuilder:validation:Pattern=`^https?://.+`
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// credentials for the server. The environment variable CNSBENCH_PROMETHEUS_AUTHORIZATION has priority.
	// +optional
	Credentials *OutputCredentials `json:"credentials,omitempty"`
	// queries by name. Objectives and triggers use the name: value(NAME). No action may have it.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	Queries map[string]PromQL `json:"queries"`
}

// PromQL is an expression in the query language of Prometheus, of an instant vector or a scalar.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=4096
type PromQL string
