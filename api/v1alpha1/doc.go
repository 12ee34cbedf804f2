// Package v1alpha1 has the types of group cnsbench.dev: a Benchmark is one
// declarative file that says which actions are done to storage and when.
//
// The types, their markers and the schema generated from them are the only
// place for defaults and for rules that one object can be checked by alone;
// package plan applies the same schema offline.
//
// +kubebuilder:object:generate=true
// +groupName=cnsbench.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types of this package.
var GroupVersion = schema.GroupVersion{Group: "cnsbench.dev", Version: "v1alpha1"}

// AddToScheme makes the types known to a scheme.
var AddToScheme = (&schemeBuilder).AddToScheme

var schemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Benchmark{}, &BenchmarkList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})
