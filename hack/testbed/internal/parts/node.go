package parts

import (
	"fmt"
	"path/filepath"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/settings"
)

// containerd, with images only as they are imported and its sockets apart. NRI is off: its socket is one per machine.
const containerdConfig = `version = 3
root = "%[1]s/containerd"
state = "%[1]s/containerd-state"
oom_score = 0
[grpc]
  address = "%[2]s"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "localhost/pause:1"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "%[1]s/cni"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.nri.v1.nri']
  disable = true
`

// Pods are routed, not masqueraded: their addresses are seen as they are on the other node and on the machine.
const cniConfig = `{"cniVersion": "0.4.0", "name": "testbed", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "ipam": {
    "type": "host-local", "dataDir": "%s", "ranges": [[{"subnet": "%s"}]], "routes": [{"dst": "0.0.0.0/0"}]}}
]}
`

func (b builder) containerd(n settings.Node) Part {
	dir, config := b.l.NodeDir(n), b.l.Path("etc", n.Name+"-containerd.toml")
	return Part{
		Name: "containerd-" + n.Name, Stage: Storage, Node: &n, Health: Health{Socket: b.l.Containerd(n)},
		Files: map[string]string{
			config: fmt.Sprintf(containerdConfig, dir, b.l.Containerd(n)),
			filepath.Join(dir, "cni/10-testbed.conflist"): fmt.Sprintf(cniConfig, filepath.Join(dir, "ipam"), n.Pods),
		},
		// The shim is looked for in the PATH.
		Env:  []string{"PATH=" + b.l.Path("bin") + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Argv: []string{"containerd", "--config=" + config},
	}
}

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: "%[1]s/ca.crt"}}
authorization: {mode: Webhook}
tlsCertFile: "%[1]s/%[2]s.crt"
tlsPrivateKeyFile: "%[1]s/%[2]s.key"
containerRuntimeEndpoint: "unix://%[3]s"
cgroupDriver: cgroupfs
cgroupRoot: /%[4]s
failCgroupV1: false
failSwapOn: false
clusterDNS: ["%[5]s"]
clusterDomain: cluster.local
resolvConf: "%[6]s"
volumePluginDir: "%[7]s/volumeplugins"
podLogsDir: "%[7]s/logs" # in a shared one each kubelet removes the logs of pods that it does not know
healthzBindAddress: %[12]s
nodeStatusUpdateFrequency: %[8]s
syncFrequency: %[11]s
kubeAPIQPS: %[9]d
kubeAPIBurst: %[10]d
maxPods: 240
serializeImagePulls: false
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: "100Mi", nodefs.available: "1%%", imagefs.available: "1%%"}
`

func (b builder) kubelet(n settings.Node) Part {
	dir, config, resolv := b.l.NodeDir(n), b.l.Path("etc", n.Name+"-kubelet.yaml"), b.l.Path("etc", "resolv.conf")
	l := b.s.Limits["kubelet"]
	return Part{
		Name: "kubelet-" + n.Name, Stage: Kubelets, Node: &n, Health: Health{URL: "http://" + n.Addr +
			":10248/healthz"},
		Files: map[string]string{
			config: fmt.Sprintf(kubeletConfig, b.l.Path("pki"), n.Name, b.l.Containerd(n), n.Cgroup,
				settings.ClusterDNS, resolv, dir,
				b.s.NodeStatus, int(l.QPS), l.Burst, b.s.KubeletSync, n.Addr),
			resolv: "nameserver " + settings.ClusterDNS + "\n",
		},
		Argv: []string{"kubelet", "--config=" + config, "--kubeconfig=" + b.l.Kubeconfig(n.Name),
			"--hostname-override=" + n.Name, "--node-ip=" + n.Addr, "--root-dir=" + filepath.Join(dir, "kubelet"),
			"--cert-dir=" + filepath.Join(dir, "kubelet-pki")},
	}
}

const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: "%s"}
hostnameOverride: %s
clusterCIDR: %s
mode: %s
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`

func (b builder) proxy(n settings.Node) Part {
	config := b.l.Path("etc", n.Name+"-proxy.yaml")
	return Part{
		Name: "proxy-" + n.Name, Stage: Services, Node: &n, Health: Health{URL: "http://" + n.Addr + ":10256/healthz"},
		Files: map[string]string{config: fmt.Sprintf(proxyConfig, b.l.Kubeconfig("proxy"), n.Name, settings.PodNet,
			b.s.ProxyMode)},
		Argv: []string{"kube-proxy", "--config=" + config},
	}
}

// registrar tells a node's kubelet of the drivers.
func (b builder) registrar(n settings.Node) Part {
	argv := []string{"testbed", "registrar", "--dir=" + filepath.Join(b.l.NodeDir(n), "kubelet/plugins_registry")}
	for _, d := range settings.Drivers() {
		argv = append(argv, fmt.Sprintf("--driver=%s=%s=%s", d.Backend, d.Name(), b.l.DriverSocket(d.Backend, &n)))
	}
	return Part{Name: "registrar-" + n.Name, Stage: Services, Argv: argv}
}
