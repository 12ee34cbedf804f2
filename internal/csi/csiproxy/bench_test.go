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

// BenchmarkProxyOverhead measures the latency of sequential calls with and without a proxy. The null driver does no
// work for the call. The calls alternate, so that other load on the machine affects both equally.
func BenchmarkProxyOverhead(b *testing.B) {
	dir := shortDir(b)
	d := startDriver(b, filepath.Join(dir, "csi.sock"), csidriver.Options{})
	p, _ := startProxy(b, csiproxy.Options{Upstream: d.socket, Listen: filepath.Join(dir, "proxied.sock")})
	waitFor(b, "the proxy", func() bool { return answers(b.Context(), filepath.Join(dir, "proxied.sock")) })
	var w watcher
	w.follow(b, serveRecords(b, p)) // a connected client is part of the cost
	ways := []csi.NodeClient{csi.NewNodeClient(dial(b, d.socket)),
		csi.NewNodeClient(dial(b, filepath.Join(dir, "proxied.sock")))}
	request := &csi.NodeGetVolumeStatsRequest{VolumeId: "pvc-0123456789abcdef",
		VolumePath: "/var/lib/kubelet/pods/uid/volumes/kubernetes.io~csi/pvc/mount"}
	took := [2][]time.Duration{}
	for i := range 2 * b.N {
		began := time.Now()
		_, _ = ways[i%2].NodeGetVolumeStats(b.Context(), request) // the volume does not exist
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
