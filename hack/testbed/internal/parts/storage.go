package parts

import (
	"fmt"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/settings"
)

// metricsPort is where the sidecars of the drivers serve their metrics, on the loopback: these first ports and 10 a
// driver.
const metricsPort = 23800

// driver is one process for both nodes: they share its storage as they share the machine, each by a socket of its own.
func (b builder) driver(d settings.Driver) Part {
	p := Part{
		Name: "driver-" + d.Backend, Stage: Storage, Health: Health{Socket: b.l.DriverSocket(d.Backend, nil)},
		Argv: []string{"cnsbench", "csi", "driver", "--backend=" + d.Backend,
			"--socket=" + b.l.DriverSocket(d.Backend, nil),
			"--node-id=controller", "--base-dir=" + b.l.Path("driver", d.Backend), "--truth-log=" + b.l.Path("truth",
				d.Backend+".jsonl"),
			"--inject=" + b.Injection(d.Backend), fmt.Sprintf("--seed=%d", b.s.Seed), "--pool-size=" + b.s.PoolSize},
	}
	for _, n := range settings.Nodes() {
		p.Argv = append(p.Argv, fmt.Sprintf("--node=%s=%s", n.Name, b.l.DriverSocket(d.Backend, &n)))
	}
	return p
}

// Injection is the file with the faults of a driver.
func (b builder) Injection(backend string) string { return b.l.Path("inject", backend+".yaml") }

// sidecar is what the four sidecars of a driver have in common.
func (b builder) sidecar(d settings.Driver, kind string, port int, workers string, args ...string) Part {
	l := b.s.Limits[kind]
	argv := append([]string{"csi-" + kind, "--csi-address=" + b.l.DriverSocket(d.Backend, nil),
		"--kubeconfig=" + b.l.Kubeconfig("csi-"+kind),
		"--leader-election=false", fmt.Sprintf("--http-endpoint=127.0.0.1:%d", port)}, b.qps(kind)...)
	if l.Timeout > 0 {
		argv = append(argv, "--timeout="+l.Timeout.String())
	}
	if l.Workers > 0 {
		argv = append(argv, fmt.Sprintf("--%s=%d", workers, l.Workers))
	}
	return Part{
		Name: "csi-" + kind + "-" + d.Backend, Stage: Services, Argv: append(argv,
			args...), Follows: "driver-" + d.Backend,
		Health: Health{URL: fmt.Sprintf("http://127.0.0.1:%d/metrics", port)},
	}
}

// port is the metrics port of a driver's i-th sidecar.
func port(d settings.Driver, i int) int {
	for at, other := range settings.Drivers() {
		if other.Backend == d.Backend {
			return metricsPort + 10*at + i
		}
	}
	return 0
}

func (b builder) provisioner(d settings.Driver) Part {
	p := b.sidecar(d, "provisioner", port(d, 0), "worker-threads", "--extra-create-metadata")
	if d.Backend == "loopfile" { // its volumes have a file system also where the class does not say which
		p.Argv = append(p.Argv, "--default-fstype=ext4")
	}
	p.Env = []string{"NAMESPACE=kube-system", "POD_NAME=csi-provisioner-" + d.Backend, "NODE_NAME=controller"}
	return p
}

func (b builder) attacher(d settings.Driver) Part {
	return b.sidecar(d, "attacher", port(d, 1), "worker-threads")
}

func (b builder) resizer(d settings.Driver) Part {
	return b.sidecar(d, "resizer", port(d, 2), "workers")
}

func (b builder) snapshotter(d settings.Driver) Part {
	return b.sidecar(d, "snapshotter", port(d, 3), "worker-threads", "--feature-gates=CSIVolumeGroupSnapshot=true")
}

func (b builder) snapshotController() Part {
	const at = metricsPort - 1
	p := Part{
		Name: "snapshot-controller", Stage: Services, Health: Health{URL: fmt.Sprintf("http://127.0.0.1:%d/metrics",
			at)},
		Argv: append([]string{"snapshot-controller", "--kubeconfig=" + b.l.Kubeconfig("snapshot-controller"),
			"--leader-election=false",
			"--feature-gates=CSIVolumeGroupSnapshot=true", fmt.Sprintf("--http-endpoint=127.0.0.1:%d",
				at)}, b.qps("snapshot-controller")...),
	}
	if w := b.s.Limits["snapshot-controller"].Workers; w > 0 {
		p.Argv = append(p.Argv, fmt.Sprintf("--worker-threads=%d", w))
	}
	return p
}

// gateway is the object store of the driver of COSI; pods reach it as they reach the API server.
func (b builder) gateway() Part {
	at, dir := fmt.Sprintf("%s:%d", settings.Host, settings.GatewayPort), b.l.Path("gateway")
	return Part{
		Name: "versitygw", Stage: Storage, Env: settings.GatewayAccount(),
		Health: Health{URL: settings.Gateway() + "/health"},
		Argv: []string{"versitygw", "--port=" + at, "--quiet", "--health=/health", "--access-log=" + b.l.Path("log",
			"versitygw-access.log"), "--iam-dir=" + dir + "/iam", "posix", "--sidecar=" + dir + "/meta", dir + "/data"},
	}
}

// cosi are upstream's controller, and the driver with upstream's sidecar.
func (b builder) cosi() []Part {
	socket := b.l.DriverSocket("cosi", nil)
	client := func(name string, args ...string) []string {
		return append(append([]string{name, "--kubeconfig=" + b.l.Kubeconfig("cosi")}, b.qps("cosi")...), args...)
	}
	return []Part{
		{Name: "cosi-driver", Stage: Storage, Health: Health{Socket: socket}, Env: settings.GatewayAccount(),
			Argv: []string{"cosi-driver", "--socket=" + socket, "--endpoint=" + settings.Gateway()}},
		{Name: "cosi-controller", Stage: Services, Argv: client("cosi-controller")},
		{Name: "cosi-sidecar", Stage: Services, Follows: "cosi-driver",
			Argv: client("cosi-sidecar", "--driver-addr=unix://"+socket)},
	}
}
