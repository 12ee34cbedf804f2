package kubernetes

import (
	"sync"

	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/disrupt"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/lagprobe"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/lease"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/manifests"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/metrics"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/provision"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
)

// Options say which cluster to use and how its pods reach the runner.
type Options = core.Options

// Engine is the engine of one run. It implements engine.Engine.
type Engine struct {
	*pods.State
	provisioner  *provision.Provisioner
	manifests    *manifests.Manifests
	disruptor    *disrupt.Disruptor
	watches      *watch.Watches
	proxies      []*csiproxy.Client
	leases       *lease.Holder
	probes       *lagprobe.Probes
	metrics      *metrics.Collector
	inventory    map[string]*csiproxy.Inventory // by proxy, before the run
	hasSnapshots bool
	closeOnce    sync.Once
}
