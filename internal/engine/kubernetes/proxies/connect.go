// Package proxies connects to CSI proxies: they report the calls of a driver, and list its volumes and snapshots.
package proxies

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
)

// Names of installed CSI proxies (config/csi-proxy).
const (
	proxySecret   = "cnsbench-csi-proxy"
	proxyTokenKey = "token"
	proxyLabel    = "app.kubernetes.io/component=csi-proxy"
	// proxyDriver is the label with the driver of a proxy.
	proxyDriver = "cnsbench.dev/csi-driver"
	proxyPort   = "9443"
)

const proxyDialTimeout = 15 * time.Second

// proxy is a CSI proxy to connect to. must is set for a proxy that the user named: it has to be reachable.
type proxy struct {
	address, token string
	must           bool
}

// Connect connects to the proxies that the user named, or else to the installed ones.
func Connect(ctx context.Context, e *core.Run, t *tracker.Tracker) ([]*csiproxy.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, proxyDialTimeout)
	defer cancel()
	var list []proxy
	for _, address := range e.Proxies {
		list = append(list, proxy{address: address, token: e.ProxyToken, must: true})
	}
	if len(list) == 0 && e.ProxyNamespace != "" {
		list = installed(ctx, e)
	}
	clients := make([]*csiproxy.Client, len(list))
	var g errgroup.Group
	for i, p := range list {
		g.Go(func() error {
			c, err := connectTo(ctx, e, t, p)
			clients[i] = c
			return err
		})
	}
	err := g.Wait()
	return slices.DeleteFunc(clients, func(c *csiproxy.Client) bool { return c == nil }), err
}

func connectTo(ctx context.Context, e *core.Run, t *tracker.Tracker, p proxy) (*csiproxy.Client, error) {
	where := "csi-proxy " + p.address
	c, err := csiproxy.Dial(ctx, p.address, p.token, e.Session.Clock, csiproxy.Handlers{
		Call: t.SeeCall,
		Gap: func(g csiproxy.Gap) {
			e.Session.Sink.Log(where, fmt.Sprintf("its records have a gap from %v to %v: %s", time.Duration(g.From),
				time.Duration(g.To), g.Reason))
		},
	})
	switch {
	case err != nil && p.must:
		return nil, fmt.Errorf("follow the CSI proxy at %s: %w", p.address, err)
	case err != nil:
		e.Session.Sink.Log(where, fmt.Sprintf("what it records is missing: %v", err))
		return nil, nil
	}
	e.Session.Sink.Log(where, fmt.Sprintf("calls of driver %s on node %s are recorded", c.Driver(), c.Node()))
	return c, nil
}

// installed lists the installed proxies of the run's drivers. A missing installation and a missing right look the
// same.
func installed(ctx context.Context, e *core.Run) []proxy {
	secret := &corev1.Secret{}
	_, err := e.Client.Get(ctx, api.Secrets, e.ProxyNamespace, proxySecret, secret)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	var pods []api.Object
	if err == nil {
		pods, _, err = e.Client.List(ctx, api.Pods, e.ProxyNamespace, metav1.ListOptions{LabelSelector: proxyLabel})
	}
	if err != nil {
		e.Session.Sink.Log("engine", fmt.Sprintf("CSI proxies are not used: %v", err))
		return nil
	}
	drivers := runDrivers(e)
	var list []proxy
	for _, o := range pods {
		p := o.(*corev1.Pod)
		if p.Status.Phase != corev1.PodRunning || p.Status.PodIP == "" || len(drivers) > 0 &&
			!drivers[p.Labels[proxyDriver]] {
			continue
		}
		list = append(list,
			proxy{address: net.JoinHostPort(p.Status.PodIP, proxyPort), token: string(secret.Data[proxyTokenKey])})
	}
	return list
}

// runDrivers returns the drivers of the plan's StorageClasses; empty: any.
func runDrivers(e *core.Run) map[string]bool {
	drivers := map[string]bool{}
	for name, sc := range e.Session.StorageClasses {
		if known, ok := e.Classes[name]; ok {
			sc = known
		}
		if sc.Provisioner != "" {
			drivers[sc.Provisioner] = true
		}
	}
	return drivers
}

// Describe describes the proxies for the record.
func Describe(clients []*csiproxy.Client) []map[string]string {
	list := []map[string]string{}
	for _, c := range clients {
		list = append(list, map[string]string{"driver": c.Driver(), "node": c.Node()})
	}
	return list
}
