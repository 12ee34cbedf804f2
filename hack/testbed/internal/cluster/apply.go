package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

//go:embed manifests/testbed.yaml
var fixedManifests string

// groupVersion is the version of group snapshots that the custom resources serve.
const groupVersion = "v1"

// kubectl runs kubectl as the administrator.
func (c *Cluster) kubectl(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, c.Bin("kubectl"),
		append([]string{"--kubeconfig", c.Kubeconfig("admin")}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// applyManifests applies the custom resources, then what needs them.
func (c *Cluster) applyManifests(ctx context.Context) error {
	apply := []string{"apply", "--server-side", "--force-conflicts", "-f"}
	if err := c.kubectl(ctx, append(apply, c.Bin("crd"))...); err != nil {
		return err
	}
	if err := c.kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "-f", c.Bin("crd")); err != nil {
		return err
	}
	text := fixedManifests + driverManifests()
	path := c.Path("etc", "manifests.yaml") // for people to read
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	return c.kubectl(ctx, append(apply, path)...)
}

// waitForAccounts waits for what a namespace gets some time after its making, without which no pod can be made in it.
func (c *Cluster) waitForAccounts(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	for end := time.Now().Add(startPatience); ; time.Sleep(100 * time.Millisecond) {
		err := client.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
		if err == nil || time.Now().After(end) || ctx.Err() != nil {
			return err
		}
	}
}
