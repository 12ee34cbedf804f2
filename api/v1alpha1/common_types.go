package v1alpha1

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Name identifies a part of the file, such as a rate or an output.
//
// +kubebuilder:validation:Pattern=`^[A-Za-z]([-_A-Za-z0-9]*[A-Za-z0-9])?$`
// +kubebuilder:validation:MaxLength=63
type Name string

// ActionName is the name of an action. It is a DNS label because the names of objects contain it.
//
// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
// +kubebuilder:validation:MaxLength=40
type ActionName string

// Duration is a length of time such as 500ms, 30s, 5m or 1h30m.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
// +kubebuilder:validation:MaxLength=32
type Duration struct {
	metav1.Duration `json:",inline"`
}

// Number is a positive number, with or without a fraction.
//
// +kubebuilder:validation:Type=number
// +kubebuilder:validation:Minimum=0
// +kubebuilder:validation:ExclusiveMinimum=true
type Number struct {
	Value float64 `json:"-"`
}

// MarshalJSON writes a plain number.
func (n Number) MarshalJSON() ([]byte, error) { return json.Marshal(n.Value) }

// UnmarshalJSON reads a plain number.
func (n *Number) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &n.Value) }

// NumberOrZero is a number that is not negative, with or without a fraction.
//
// +kubebuilder:validation:Type=number
// +kubebuilder:validation:Minimum=0
type NumberOrZero struct {
	Value float64 `json:"-"`
}

// MarshalJSON writes a plain number.
func (n NumberOrZero) MarshalJSON() ([]byte, error) { return json.Marshal(n.Value) }

// UnmarshalJSON reads a plain number.
func (n *NumberOrZero) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &n.Value) }

// Var is the value of a template variable: a string, or an integer without quotes.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=4096
type Var string

// UnmarshalJSON takes a string or a number.
func (v *Var) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err == nil {
		*v = Var(s)
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(b, &n); err != nil {
		return fmt.Errorf("%s is neither a string nor a number", b)
	}
	*v = Var(n.String())
	return nil
}

// Select chooses among the matching objects.
//
// +kubebuilder:validation:Enum=all;oldest;newest;random;roundRobin
type Select string

// The selections.
const (
	SelectAll        Select = "all"
	SelectOldest     Select = "oldest"
	SelectNewest     Select = "newest"
	SelectRandom     Select = "random"
	SelectRoundRobin Select = "roundRobin"
)

// Target selects the objects of the run that an action operates on.
type Target struct {
	// actionName selects the objects that this action created. For volumes these include the volumes of its
	// workloads.
	// +optional
	ActionName ActionName `json:"actionName,omitempty"`
	// volumeName selects the volumes with this name: the name of a claim in a workload's template.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	VolumeName string `json:"volumeName,omitempty"`
	// labels selects the objects that have all of these labels.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]string `json:"labels,omitempty"`
}
