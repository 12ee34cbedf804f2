package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/machine"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/parts"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/process"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/settings"
)

// Down ends everything and undoes it. What was built, the images and the logs stay; cluster state, volumes and truth
// logs
// go. It goes on after a failure and reports all of them; it is idempotent.
func (c *Cluster) Down(context.Context) error {
	var problems []error
	// From the outside in: a kubelet would start pods again, an API server waits long for an etcd that is gone.
	for _, meant := range []func(name string) bool{
		func(name string) bool { return strings.HasPrefix(name, "kubelet") },
		func(name string) bool {
			return !slices.ContainsFunc(inner, func(i string) bool { return strings.HasPrefix(name, i) })
		},
		func(name string) bool { return name == "apiserver" },
	} {
		problems = append(problems, c.stopAll(meant))
	}
	problems = append(problems, c.stopPods(), c.stopAll(func(string) bool { return true }))
	for _, d := range settings.Drivers() {
		problems = append(problems, c.destroyStorage(d))
	}
	nodes := []string{c.Dir}
	for _, n := range settings.Nodes() {
		nodes = append(nodes, c.NodeDir(n))
	}
	problems = append(problems, machine.UnmountBelow(nodes...), machine.NetworkDown(), machine.CgroupsDown())
	if err := errors.Join(problems...); err != nil {
		return err // what is left may be mounted: remove nothing
	}
	return errors.Join(machine.Root{}.Restore(c.machineFile()), c.keepAuditLog(), c.removeState())
}

// keepAuditLog moves the audit log to the other logs, if the variable TESTBED_KEEP_AUDIT_LOG is set.
func (c *Cluster) keepAuditLog() error {
	if os.Getenv("TESTBED_KEEP_AUDIT_LOG") == "" {
		return nil
	}
	to := c.Path("log", "audit-"+time.Now().UTC().Format("20060102-150405")+".log")
	err := os.Rename(c.Path("audit.log"), to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		fmt.Println("the audit log is", to)
	}
	return err
}

// inner are the parts that others need to end well.
var inner = []string{"etcd", "apiserver", "containerd", "driver"}

// stopAll stops the recorded processes that are meant, all at once.
func (c *Cluster) stopAll(meant func(name string) bool) error {
	all, err := c.records.All()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(r process.Record) bool { return !meant(r.Name) })
	ended := make(chan error)
	for _, r := range all {
		go func() { ended <- c.records.Stop(r, patience) }()
	}
	var problems []error
	for range all {
		problems = append(problems, <-ended)
	}
	return errors.Join(problems...)
}

// stopPods kills what runs in the nodes' cgroups, and then the shims, which outlive their containerd.
func (c *Cluster) stopPods() error {
	var problems []error
	for _, n := range settings.Nodes() {
		problems = append(problems, killUntilGone(func() ([]int, error) { return machine.PodProcesses(n) }),
			killUntilGone(func() ([]int, error) { return c.shims(n) }))
	}
	return errors.Join(problems...)
}

func killUntilGone(list func() ([]int, error)) error {
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		pids, err := list()
		if err != nil || len(pids) == 0 {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("these processes of pods do not end: %v", pids)
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
}

// shims lists the shims of a node's containerd: those that work in its folder.
func (c *Cluster) shims(n settings.Node) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil {
			continue // ended meanwhile
		}
		argv := strings.Split(string(bytes.TrimRight(line, "\x00")), "\x00")
		bundle, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if err == nil && filepath.Base(argv[0]) == "containerd-shim-runc-v2" &&
			strings.HasPrefix(bundle, c.NodeDir(n)+"/") {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// destroyStorage lets the driver undo what it mounted and attached.
func (c *Cluster) destroyStorage(d settings.Driver) error {
	base := c.Path("driver", d.Backend)
	if _, err := os.Stat(base); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_, err := machine.Run(c.Bin("cnsbench"), "csi", "driver", "--backend="+d.Backend, "--base-dir="+base, "--destroy")
	return err
}

// removeState removes all but what was built, the images and the logs.
func (c *Cluster) removeState() error {
	var problems []error
	for _, name := range []string{"etcd", "etc", "pki", "proc", "driver", "gateway", "truth", "inject", "audit.log",
		"admin.kubeconfig", "state.json"} {
		problems = append(problems, os.RemoveAll(c.Path(name)))
	}
	for _, n := range settings.Nodes() {
		problems = append(problems, os.RemoveAll(c.NodeDir(n)))
	}
	kept, err := c.loadDigests()
	for key := range kept {
		if strings.Contains(key, " on ") {
			delete(kept, key)
		}
	}
	if err == nil && len(kept) > 0 {
		err = c.saveDigests(kept)
	}
	problems = append(problems, c.forgetContainers())
	return errors.Join(append(problems, err, os.RemoveAll(settings.Run))...)
}

// Restart starts the parts that the names mean anew, with the settings of now, and what follows them.
func (c *Cluster) Restart(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := c.Stop(name); err != nil {
			return err
		}
		if err := c.Start(ctx, name); err != nil {
			return err
		}
	}
	return c.saveSettings()
}

// forgetContainers removes what runc and the shims keep of containers that were killed, and its folders when nobody
// else's are there.
func (c *Cluster) forgetContainers() error {
	states, err := filepath.Glob("/run/containerd/runc/k8s.io/*/state.json")
	problems := []error{err}
	for _, path := range states {
		text, err := os.ReadFile(path)
		ours := slices.ContainsFunc(settings.Nodes(),
			func(n settings.Node) bool { return bytes.Contains(text, []byte(c.NodeDir(n)+"/")) })
		if err == nil && ours {
			err = os.RemoveAll(filepath.Dir(path))
		}
		problems = append(problems, err)
	}
	sockets, err := filepath.Glob("/run/containerd/s/*")
	problems = append(problems, err)
	for _, path := range sockets {
		if conn, err := net.Dial("unix", path); errors.Is(err, syscall.ECONNREFUSED) {
			problems = append(problems, os.Remove(path)) // its shim was killed
		} else if err == nil {
			_ = conn.Close()
		}
	}
	for _, dir := range []string{"runc/k8s.io", "runc", "s", ""} {
		_ = os.Remove(filepath.Join("/run/containerd", dir)) // as long as it is empty
	}
	return errors.Join(problems...)
}

// Start starts the parts that a name means, as far as they do not run, and starts anew what follows them.
func (c *Cluster) Start(ctx context.Context, name string) error {
	started := map[string]bool{}
	if err := c.each(name, func(p parts.Part) error {
		started[p.Name] = true
		_, err := c.ensure(p)
		return err
	}); err != nil {
		return err
	}
	for _, p := range parts.All(c.Layout, c.Settings) {
		_, stays, err := c.records.Get(p.Name) // one that was stopped on purpose has no record
		if err == nil && stays && started[p.Follows] {
			started[p.Name] = true
			_, err = c.ensure(p)
		}
		if err == nil && started[p.Name] {
			err = c.waitFor(ctx, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Stop stops the parts that a name means.
func (c *Cluster) Stop(name string) error {
	return c.each(name, func(p parts.Part) error {
		r, ok, err := c.records.Get(p.Name)
		if err != nil || !ok {
			return err
		}
		return c.records.Stop(r, patience)
	})
}

// Kill ends the parts that a name means at once, as a crash does.
func (c *Cluster) Kill(name string) error {
	return c.each(name, func(p parts.Part) error {
		r, ok, err := c.records.Get(p.Name)
		if err != nil || !ok {
			return err
		}
		return c.records.Stop(r, 0)
	})
}

// each does something with every part that a name means, and lists them all when it means none.
func (c *Cluster) each(name string, do func(parts.Part) error) error {
	var names []string
	found := false
	for _, p := range parts.All(c.Layout, c.Settings) {
		names = append(names, p.Name)
		if !p.Matches(name) {
			continue
		}
		found = true
		if err := do(p); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("no part is called %q; there are %s", name, strings.Join(names, ", "))
	}
	return nil
}
