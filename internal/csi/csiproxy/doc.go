// Package csiproxy makes the RPCs of a CSI driver visible, which no API of
// Kubernetes shows: a proxy sits on the driver's unix socket, hands every
// byte on as it came, and reads along: when each RPC began and ended, how, and
// for which volume. A runner that knows the proxy's token follows its records
// (Dial), joined to the run's clock.
//
// The proxy is no party to the protocol: it copies bytes between each client
// and a connection of that client's own to the driver, and parses the copy.
// Deadlines, cancellation, metadata, flow control and unknown services are
// therefore the driver's own, and a mistake in the parser costs records,
// never calls.
//
// See docs/design/csi-proxy.md.
package csiproxy
