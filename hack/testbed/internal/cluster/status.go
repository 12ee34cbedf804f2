package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/machine"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/parts"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/settings"
)

// Status prints what runs and what does not, and returns whether all is well.
func (c *Cluster) Status(ctx context.Context, out io.Writer) (bool, error) {
	well, memory := true, int64(0)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PART\tPID\tUP\tMEMORY\tSTATE")
	for _, p := range parts.All(c.Layout, c.Settings) {
		r, ok, err := c.records.Get(p.Name)
		if err != nil {
			return false, err
		}
		switch {
		case !ok:
			fmt.Fprintf(w, "%s\t-\t-\t-\tnot started\n", p.Name)
			well = false
			continue
		case !r.Alive():
			fmt.Fprintf(w, "%s\t-\t-\t-\tended; see %s\n", p.Name, c.Log(p.Name))
			well = false
			continue
		}
		state := "works"
		if err := c.check(ctx, p); err != nil {
			state, well = "does not answer: "+err.Error(), false
		}
		rss := r.RSS()
		memory += rss
		fmt.Fprintf(w, "%s\t%d\t%v\t%d MiB\t%s\n", p.Name, r.PID, time.Since(r.Started).Round(time.Second), rss>>20,
			state)
	}
	if err := w.Flush(); err != nil {
		return false, err
	}
	fmt.Fprintf(out, "\nmemory of all parts: %d MiB (with what they share)\n", memory>>20)
	if _, err := os.Stat(c.Kubeconfig("admin")); err != nil {
		fmt.Fprintln(out, "there is no cluster; make testbed-up brings one up")
		return false, nil
	}
	problems, err := c.nodeProblems(ctx)
	if err != nil {
		return false, fmt.Errorf("the API server does not answer: %w", err)
	}
	for _, n := range settings.Nodes() {
		state := "ready, every driver registered"
		if why := problems[n.Name]; why != "" {
			state, well = why, false
		}
		if machine.IsCut(n) {
			state, well = state+"; cut off (testbed heal-node "+n.Name+")", false
		}
		fmt.Fprintf(out, "%s (%s): %s\n", n.Name, n.Addr, state)
	}
	fmt.Fprintf(out, "\nkubeconfig  %s\nkubectl     %s\naudit log   %s\nlogs        %s\n",
		c.Kubeconfig("admin"), c.Bin("kubectl"), c.Path("audit.log"), c.Path("log"))
	return well, nil
}

// KillNode cuts a node off the network, HealNode puts it back.
func (c *Cluster) KillNode(name string) error { return onNode(name, machine.Cut) }

// HealNode undoes KillNode.
func (c *Cluster) HealNode(name string) error { return onNode(name, machine.Heal) }

func onNode(name string, do func(settings.Node) error) error {
	for _, n := range settings.Nodes() {
		if n.Name == name {
			return do(n)
		}
	}
	return fmt.Errorf("no node is called %q; there are node1 and node2", name)
}
