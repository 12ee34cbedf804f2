package csiproxy_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
)

// BenchmarkProxyOverhead compares one call after another, of which null does
// nothing, with and without a proxy. Calls alternate, so that whatever else
// the machine does meets both alike.
func BenchmarkProxyOverhead(b *testing.B) {
	dir := shortDir(b)
	d := startDriver(b, filepath.Join(dir, "csi.sock"), csidriver.Options{})
	p, _ := startProxy(b, csiproxy.Options{Upstream: d.socket, Listen: filepath.Join(dir, "proxied.sock")})
	waitFor(b, "the proxy", func() bool { return answers(b.Context(), filepath.Join(dir, "proxied.sock")) })
	var w watcher
	w.follow(b, serveRecords(b, p)) // somebody who listens is part of the cost
	ways := []csi.NodeClient{csi.NewNodeClient(dial(b, d.socket)),
		csi.NewNodeClient(dial(b, filepath.Join(dir, "proxied.sock")))}
	request := &csi.NodeGetVolumeStatsRequest{VolumeId: "pvc-0123456789abcdef",
		VolumePath: "/var/lib/kubelet/pods/uid/volumes/kubernetes.io~csi/pvc/mount"}
	took := [2][]time.Duration{}
	for i := range 2 * b.N {
		began := time.Now()
		_, _ = ways[i%2].NodeGetVolumeStats(b.Context(), request) // there is no such volume
		took[i%2] = append(took[i%2], time.Since(began))
	}
	for i := range took {
		slices.Sort(took[i])
	}
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		k := int(q.at * float64(b.N))
		k = min(k, b.N-1)
		b.ReportMetric(float64(took[0][k])/1e3, "µs/direct-"+q.name)
		b.ReportMetric(float64(took[1][k])/1e3, "µs/proxied-"+q.name)
		b.ReportMetric(float64(took[1][k]-took[0][k])/1e3, "µs/added-"+q.name)
	}
}
