// Package sidecar states what Kubernetes' CSI sidecars and kubelet do beside a driver's answers: which parameters of
// classes are theirs, which secret a call gets, which errors they repeat a call after, and how long they wait between.
// An engine that calls drivers without sidecars does the same. The package is pure.
package sidecar
