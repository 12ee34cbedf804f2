// Package settings says what a test bed is made of: where its state lies, which nodes and drivers it has, and which
// limits its parts are started with. It only computes; nothing here touches the machine.
package settings

import (
	"fmt"
	"path/filepath"
)

// Layout names every path of a test bed. All are below Dir, except unix sockets, whose paths may have 107 bytes at
// most,
// and the nodes' folders, when Dir is too long for the sockets that a kubelet makes below its own.
type Layout struct {
	Repo string // the product's repository
	Dir  string // the state folder
}

const (
	maxSocket = 107 // sun_path of unix(7), without its final NUL
	// longNodes holds the nodes' folders when the state folder's path is too long.
	longNodes = "/var/lib/cnsbench-testbed"
	// Run holds the sockets.
	Run = "/run/cnsbench-testbed"
)

// Bin is where a built program lies.
func (l Layout) Bin(name string) string { return filepath.Join(l.Dir, "bin", name) }

// Log is the log of a part.
func (l Layout) Log(part string) string { return filepath.Join(l.Dir, "log", part+".log") }

// Path is a path below the state folder.
func (l Layout) Path(elem ...string) string {
	return filepath.Join(append([]string{l.Dir}, elem...)...)
}

// NodeDir is the folder of a node.
func (l Layout) NodeDir(n Node) string {
	longest := filepath.Join(l.Dir, n.Name, "kubelet/plugins_registry/loopfile-reg.sock")
	if len(longest) > maxSocket {
		return filepath.Join(longNodes, n.Name)
	}
	return filepath.Join(l.Dir, n.Name)
}

// Containerd is the socket of a node's containerd.
func (l Layout) Containerd(n Node) string { return filepath.Join(Run, n.Name+"-containerd.sock") }

// DriverSocket is where a driver answers its sidecars; with a node, where it answers that node's kubelet.
func (l Layout) DriverSocket(backend string, n *Node) string {
	if n == nil {
		return filepath.Join(Run, backend+".sock")
	}
	return filepath.Join(Run, backend+"-"+n.Name+".sock")
}

// Kubeconfig is a user's kubeconfig; the administrator's lies at the top.
func (l Layout) Kubeconfig(user string) string {
	if user == "admin" {
		return l.Path("admin.kubeconfig")
	}
	return l.Path("pki", user+".kubeconfig")
}

// Node is one node: a network namespace with a containerd and a kubelet in it.
type Node struct {
	Name   string
	Netns  string
	Veth   string // on the machine's side
	Addr   string // of the node, on the bridge
	Pods   string // network of its pods
	Cgroup string
}

// Nodes are the two nodes.
func Nodes() []Node { return []Node{node(1), node(2)} }

func node(i int) Node {
	return Node{
		Name: fmt.Sprintf("node%d", i), Netns: fmt.Sprintf("cnsb%d", i), Veth: fmt.Sprintf("cnsb-v%d", i),
		Addr: fmt.Sprintf("10.99.0.1%d", i), Pods: fmt.Sprintf("10.88.%d.0/24", i), Cgroup: fmt.Sprintf("cnsb%d", i),
	}
}

// Addresses of the cluster. The bridge carries the nodes; the machine is its own end of it.
const (
	Bridge       = "br-cnsb"
	Host         = "10.99.0.1"
	HostCIDR     = Host + "/24"
	PodNet       = "10.88.0.0/16"
	ServiceNet   = "10.0.0.0/24"
	FirstService = "10.0.0.1"
	ClusterDNS   = Host // a DNS server of ours, see package dns
	APIPort      = 6443
	EtcdPort     = 23790
	GatewayPort  = 23900 // of versitygw
)

// Gateway is versitygw's address.
func Gateway() string { return fmt.Sprintf("http://%s:%d", Host, GatewayPort) }

// GatewayAccount is versitygw's administrator, in its environment. Only this machine and the pods on it reach it.
func GatewayAccount() []string {
	return []string{"ROOT_ACCESS_KEY=testbed", "ROOT_SECRET_KEY=testbed-secret"}
}

// Server is the API server's address.
func Server() string { return fmt.Sprintf("https://%s:%d", Host, APIPort) }

// Driver is one of the product's CSI drivers.
type Driver struct {
	Backend  string
	Attaches bool // offers ControllerPublishVolume
}

// Name is the driver's CSI name.
func (d Driver) Name() string { return d.Backend + ".csi.cnsbench.dev" }

// Drivers are the product's four.
func Drivers() []Driver {
	return []Driver{{"null", true}, {"hostdir", false}, {"loopfile", true}, {"btrfs", false}}
}
