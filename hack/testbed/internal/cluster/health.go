package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/api"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/parts"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/process"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/settings"
)

const (
	// startPatience is how long a part has to begin to work; the machine may be busy building.
	startPatience = 2 * time.Minute
	// settling is how long a part without a health check has to stay alive.
	settling = 300 * time.Millisecond
	logLines = 15
)

// waitFor waits until a part works, and says why when it does not.
func (c *Cluster) waitFor(ctx context.Context, p parts.Part) error {
	r, ok, err := c.records.Get(p.Name)
	if err != nil || !ok {
		return errors.Join(err, fmt.Errorf("%s has not been started", p.Name))
	}
	if rest := settling - time.Since(r.Started); p.Health == (parts.Health{}) && rest > 0 {
		time.Sleep(rest)
	}
	for end := time.Now().Add(startPatience); ; time.Sleep(50 * time.Millisecond) {
		if !r.Alive() {
			return c.failed(p.Name, errors.New("it ended"))
		}
		err := c.check(ctx, p)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(end) {
			return c.failed(p.Name, fmt.Errorf("it does not work after %v: %w", startPatience, err))
		}
	}
}

func (c *Cluster) failed(part string, err error) error {
	log := c.Log(part)
	return fmt.Errorf("%s: %w; the last lines of %s:\n%s", part, err, log, process.Tail(log, logLines))
}

// checker asks for health only; whom it asks is on this machine.
var checker = http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}

// check asks a part once whether it works.
func (c *Cluster) check(ctx context.Context, p parts.Part) error {
	if p.Health.Socket != "" {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", p.Health.Socket)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	if p.Health.URL == "" {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Health.URL, nil)
	if err != nil {
		return err
	}
	resp, err := checker.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", p.Health.URL, resp.Status)
	}
	return nil
}

type nodeObject struct {
	Metadata api.Meta `json:"metadata"`
	Status   struct {
		Conditions []struct{ Type, Status, Message string } `json:"conditions"`
	} `json:"status"`
}

type csiNode struct {
	Metadata api.Meta `json:"metadata"`
	Spec     struct {
		Drivers []struct {
			Name   string `json:"name"`
			NodeID string `json:"nodeID"`
		} `json:"drivers"`
	} `json:"spec"`
}

// nodeProblems says what is wrong with each node: not ready, or without a driver.
func (c *Cluster) nodeProblems(ctx context.Context) (map[string]string, error) {
	client, err := c.Client()
	if err != nil {
		return nil, err
	}
	var nodes api.List[nodeObject]
	var csiNodes api.List[csiNode]
	if err := errors.Join(client.Get(ctx, "/api/v1/nodes", &nodes),
		client.Get(ctx, "/apis/storage.k8s.io/v1/csinodes", &csiNodes)); err != nil {
		return nil, err
	}
	problems := map[string]string{}
	for _, n := range settings.Nodes() {
		if why := notReady(nodes.Items, n.Name); why != "" {
			problems[n.Name] = why
		} else if missing := missingDrivers(csiNodes.Items, n.Name); len(missing) > 0 {
			problems[n.Name] = "these drivers are not registered: " + strings.Join(missing, ", ")
		}
	}
	return problems, nil
}

func notReady(nodes []nodeObject, name string) string {
	for _, n := range nodes {
		if n.Metadata.Name != name {
			continue
		}
		for _, condition := range n.Status.Conditions {
			switch {
			case condition.Type != "Ready":
			case condition.Status != "True":
				return "not ready: " + condition.Message
			default:
				return ""
			}
		}
		return "has not said whether it is ready"
	}
	return "not registered"
}

func missingDrivers(nodes []csiNode, name string) []string {
	var missing []string
	for _, d := range settings.Drivers() {
		missing = append(missing, d.Name())
	}
	for _, n := range nodes {
		if n.Metadata.Name != name {
			continue
		}
		for _, d := range n.Spec.Drivers {
			if d.NodeID == name {
				missing = slices.DeleteFunc(missing, func(m string) bool { return m == d.Name })
			}
		}
	}
	return missing
}

// waitForKubelets waits until both nodes are ready. A kubelet that ends before is started again: all kubelets of a
// machine
// have one socket for device plugins, /var/lib/kubelet/device-plugins/kubelet.sock, which each removes and makes anew,
// and
// two that do so at once lose one of them.
func (c *Cluster) waitForKubelets(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	for end := time.Now().Add(startPatience); ; time.Sleep(200 * time.Millisecond) {
		var nodes api.List[nodeObject]
		err := client.Get(ctx, "/api/v1/nodes", &nodes)
		all := err == nil
		for _, n := range settings.Nodes() {
			why := notReady(nodes.Items, n.Name)
			if why == "" {
				continue
			}
			all = false
			if !time.Now().Before(end) {
				err = errors.Join(err, c.failed("kubelet-"+n.Name, errors.New(why)))
			}
		}
		switch {
		case all:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !time.Now().Before(end):
			return err
		}
		if err := c.startStage(ctx, c.partsOf(parts.Kubelets)); err != nil {
			return err
		}
	}
}

// waitForNodes waits until both nodes are ready and know every driver.
func (c *Cluster) waitForNodes(ctx context.Context) error {
	for end := time.Now().Add(startPatience); ; time.Sleep(200 * time.Millisecond) {
		problems, err := c.nodeProblems(ctx)
		if err == nil && len(problems) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().Before(end) {
			continue
		}
		for _, n := range settings.Nodes() {
			if why, bad := problems[n.Name]; bad {
				part := "kubelet-" + n.Name
				if strings.Contains(why, "not registered:") {
					part = "registrar-" + n.Name
				}
				err = errors.Join(err, c.failed(part, errors.New(why)))
			}
		}
		return err
	}
}
