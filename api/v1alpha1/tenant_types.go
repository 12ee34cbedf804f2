package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// Tenant is a group of workloads that share storage with other tenants. Its targets say what it is to get in each
// second; its limit is the mechanism of isolation under test.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.aggressor) && self.aggressor && has(self.targets))",message="an aggressor has no targets: it is what the other tenants are protected from"
type Tenant struct {
	// name of the tenant in reports, and in violations(NAME) and compliance(NAME).
	// +required
	Name Name `json:"name"`
	// actions whose workloads belong to the tenant. An action belongs to one tenant.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Actions []ActionName `json:"actions"`
	// aggressor marks the tenant whose load disturbs the others. Its workloads have phases: phase 0 is the base, with
	// little or no load, and each further phase is a load step.
	// +optional
	Aggressor bool `json:"aggressor,omitempty"`
	// targets are what each instance of the tenant is to get in each second.
	// +optional
	// +listType=map
	// +listMapKey=metric
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Targets []TenantTarget `json:"targets,omitempty"`
	// limit is the I/O limit of each instance of the tenant.
	// +optional
	Limit *IOLimit `json:"limit,omitempty"`
}

// TenantTarget is what one kind of I/O of an instance is to get in each second: p99, iopsFloor, or both.
//
// +kubebuilder:validation:AtLeastOneOf=p99;iopsFloor
// +kubebuilder:validation:XValidation:rule="!(self.metric.startsWith('canary') && has(self.iopsFloor))",message="the canary has a fixed rate: iopsFloor is for read or write"
type TenantTarget struct {
	// metric is the kind of I/O: read and write are the workload's, canaryRead and canaryWrite those of its canary.
	// +required
	// +kubebuilder:validation:Enum=read;write;canaryRead;canaryWrite
	Metric string `json:"metric"`
	// p99 is the latency that at most one percent of the I/Os of a second may exceed.
	// +optional
	P99 *Duration `json:"p99,omitempty"`
	// iopsFloor is the least number of I/Os that are to complete in a second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000000
	IOPSFloor *int64 `json:"iopsFloor,omitempty"`
}

// IOLimit limits the I/O of each instance on the device of each of its volumes. At least one limit is set.
//
// +kubebuilder:validation:AtLeastOneOf=readIOPS;writeIOPS;readBps;writeBps
type IOLimit struct {
	// readIOPS is the greatest number of reads per second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4000000000
	ReadIOPS *int64 `json:"readIOPS,omitempty"`
	// writeIOPS is the greatest number of writes per second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4000000000
	WriteIOPS *int64 `json:"writeIOPS,omitempty"`
	// readBps is the greatest number of bytes read per second.
	// +optional
	ReadBps *resource.Quantity `json:"readBps,omitempty"`
	// writeBps is the greatest number of bytes written per second.
	// +optional
	WriteBps *resource.Quantity `json:"writeBps,omitempty"`
	// enforcedBy is what limits. cgroup: the run puts the containers of each instance into a control group with these
	// limits (engine local, as root). driver: the storage limits, by parameters of its StorageClass or by a modifySpec;
	// the run sets nothing, and the values are what it should hold.
	// +optional
	// +kubebuilder:validation:Enum=cgroup;driver
	// +kubebuilder:default=cgroup
	EnforcedBy string `json:"enforcedBy,omitempty"`
}

// Values of IOLimit.EnforcedBy.
const (
	EnforcedByCgroup = "cgroup"
	EnforcedByDriver = "driver"
)
