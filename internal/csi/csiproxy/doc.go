// Package csiproxy records the RPCs of a CSI driver, which no Kubernetes API exposes: a proxy on the driver's
// unix socket forwards all bytes unchanged and parses a copy: when each RPC began and ended, with which
// result, and for which volume. A runner that has the proxy's token follows the records (Dial) on the run's
// clock.
//
// The proxy does not take part in the protocol: it copies bytes between each client and a separate connection
// to the driver. Deadlines, cancellation, metadata, flow control and unknown services are therefore the
// driver's own, and a parser error costs records, never calls.
//
// See docs/design/csi-drivers.md.
package csiproxy
