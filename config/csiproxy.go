package config

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What the CSI proxy's objects are called. Its namespace is not that of the
// installation: its pods need a directory of the node.
const (
	ProxyNamespace = "cnsbench-csi-proxy"
	// ProxySecret has the token that runs follow proxies with.
	ProxySecret   = "cnsbench-csi-proxy"
	exampleDriver = "driver.example.com"
	socketsDir    = "/var/lib/kubelet/plugins/"
)

// CSIProxy says on which drivers' sockets proxies are to stand. The zero value
// has the namespace and the role, and no proxy.
type CSIProxy struct {
	Drivers []CSIDriver
	// Token of at least 16 characters; empty: its Secret is not among the
	// objects.
	Token string
	// NodeSelector picks the nodes, beside those of Linux.
	NodeSelector map[string]string
}

// CSIDriver is one driver with the socket of its node service on the nodes, in
// whose name (not in its directory) $(NODE_NAME) is the node.
type CSIDriver struct{ Name, Socket string }

// driverName is what the CSI specification lets a driver be called.
var driverName = regexp.MustCompile(`^[a-zA-Z0-9]([-a-zA-Z0-9.]{0,61}[a-zA-Z0-9])?$`)

// ParseCSIDriver reads NAME or NAME=SOCKET; a driver's socket is by convention
// in the kubelet's plugins directory.
func ParseCSIDriver(s string) (CSIDriver, error) {
	name, socket, given := strings.Cut(s, "=")
	if !given {
		socket = socketsDir + name + "/csi.sock"
	}
	if !driverName.MatchString(name) {
		return CSIDriver{}, fmt.Errorf("%q is not the name of a CSI driver (kubectl get csidrivers lists them)", name)
	}
	if !path.IsAbs(socket) || path.Clean(socket) != socket || path.Dir(socket) == "/" {
		return CSIDriver{}, fmt.Errorf("socket %q of driver %s must be an absolute path of the nodes, in a directory of its own", socket, name)
	}
	return CSIDriver{name, socket}, nil
}

// objects are the token's Secret, if there is a token, and a DaemonSet for each driver, made from a sample.
func (p *CSIProxy) objects(sample *unstructured.Unstructured) (all []*unstructured.Unstructured, err error) {
	if p.Token != "" {
		all = append(all, p.secret())
	}
	for _, d := range p.Drivers {
		set := sample.DeepCopy()
		if err := p.fit(set, d); err != nil {
			return nil, err
		}
		all = append(all, set)
	}
	return all, nil
}

func (p *CSIProxy) secret() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": ProxySecret, "namespace": ProxyNamespace,
			"labels": map[string]any{"app.kubernetes.io/name": "cnsbench", "app.kubernetes.io/component": "csi-proxy"}},
		"type":       "Opaque",
		"stringData": map[string]any{"token": p.Token},
	}}
}

// fit makes the example's DaemonSet a driver's.
func (p *CSIProxy) fit(set *unstructured.Unstructured, d CSIDriver) error {
	set.SetName(proxyName(d.Name))
	labels := func(path ...string) error {
		return unstructured.SetNestedField(set.Object, d.Name, append(path, "cnsbench.dev/csi-driver")...)
	}
	containers, _, err := unstructured.NestedSlice(set.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return err
	}
	containers[0].(map[string]any)["args"] = []any{"csi", "proxy", "--driver=" + d.Name,
		"--take-over=/csi/" + path.Base(d.Socket), "--serve=:9443"}
	volumes := []any{map[string]any{"name": "socket",
		"hostPath": map[string]any{"path": path.Dir(d.Socket), "type": "Directory"}}}
	errs := []error{
		labels("spec", "selector", "matchLabels"), labels("spec", "template", "metadata", "labels"),
		unstructured.SetNestedSlice(set.Object, containers, "spec", "template", "spec", "containers"),
		unstructured.SetNestedSlice(set.Object, volumes, "spec", "template", "spec", "volumes"),
	}
	for k, v := range p.NodeSelector {
		errs = append(errs, unstructured.SetNestedField(set.Object, v, "spec", "template", "spec", "nodeSelector", k))
	}
	return errors.Join(errs...)
}

// proxyName is that of a driver's DaemonSet.
func proxyName(driver string) string {
	return "cnsbench-csi-proxy-" + strings.ToLower(strings.ReplaceAll(driver, ".", "-"))
}
