// Package cluster brings a test bed up and down: it starts what package parts describes, in stages, and sees that each
// part works before the next stage begins.
package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/api"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/build"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/machine"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/parts"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/pki"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/process"
	"github.com/cnsbench/cnsbench/hack/testbed/internal/settings"
)

// Cluster is one test bed. Commands on it must not run at the same time: Lock.
type Cluster struct {
	settings.Layout
	Settings settings.Settings
	records  process.Dir
}

// Open finds the test bed of a repository; the state folder need not exist.
func Open(repo, dir string) (*Cluster, error) {
	var err error
	if repo, err = filepath.Abs(repo); err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	// The kernel's tables name mounts without symbolic links.
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	c := &Cluster{Layout: settings.Layout{Repo: repo, Dir: dir}, Settings: settings.Defaults()}
	c.records = process.Dir(c.Path("proc"))
	return c, nil
}

func (c *Cluster) stateFile() string { return c.Path("state.json") }

// LoadSettings takes the settings of the last up or restart; false when there was none.
func (c *Cluster) LoadSettings() (bool, error) {
	text, err := os.ReadFile(c.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(text, &c.Settings)
}

func (c *Cluster) saveSettings() error {
	text, err := json.MarshalIndent(c.Settings, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(c.stateFile(), append(text, '\n'), 0o644)
}

// Up brings up what is missing, and starts anew what would run differently with the settings of now.
func (c *Cluster) Up(ctx context.Context) error {
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"looking for another", c.alone},
		{"installing packages", func(context.Context) error { return machine.Install(machine.Missing()) }},
		{"building", c.build},
		{"copying the product", c.copyProduct},
		{"making images", c.makeImages},
		{"remembering the machine", c.remember},
		{"preparing folders", c.prepare},
		{"making the network", func(context.Context) error { return machine.NetworkUp() }},
		{"making cgroups", func(context.Context) error { return machine.CgroupsUp() }},
		{"making certificates", c.certificates},
		{"starting", c.start},
		{"waiting for the nodes", c.waitForNodes},
		{"waiting for service accounts", c.waitForAccounts},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// alone refuses a second test bed, because they would share network, sockets and ports. It undoes what is left of one
// whose processes have ended, such as after a restart of the machine.
func (c *Cluster) alone(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(settings.Run, "state"))
	dir := strings.TrimSpace(string(text))
	if errors.Is(err, fs.ErrNotExist) || dir == c.Dir {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	other, err := Open(c.Repo, dir)
	if err != nil {
		return err
	}
	unlock, err := other.claim()
	if err != nil {
		return err
	}
	defer unlock()
	fmt.Println("no process of the test bed with its state in", dir, "runs: undoing what is left of it")
	return other.Down(ctx)
}

// claim locks a test bed of which nothing runs; else its error says how to take it down.
func (c *Cluster) claim() (unlock func(), err error) {
	unlock, err = c.lock(unix.LOCK_EX | unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("another command is at work on the test bed with its state in %s: wait for its end", c.Dir)
	}
	if err != nil {
		return nil, err
	}
	all, err := c.records.All()
	if err == nil && slices.ContainsFunc(all, process.Record.Alive) {
		err = fmt.Errorf("there is a test bed already, with its state in %s; take it down with: TESTBED_DIR=%s %s down",
			c.Dir, c.Dir, c.Bin("testbed"))
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// Lock excludes other commands on the same test bed; it waits for their end.
func (c *Cluster) Lock() (unlock func(), err error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, err
	}
	unlock, err = c.lock(unix.LOCK_EX | unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		fmt.Println("another command is at work on this test bed; waiting for its end")
		unlock, err = c.lock(unix.LOCK_EX)
	}
	return unlock, err
}

func (c *Cluster) lock(how int) (unlock func(), err error) {
	f, err := os.OpenFile(c.Path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

func (c *Cluster) build(ctx context.Context) error {
	root := filepath.Join(c.Repo, "hack/testbed/build")
	missing, err := build.Missing(root, c.Path("bin"))
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		return nil
	}
	fmt.Printf("building %d modules; what is built is kept. Without a build cache of Go this has taken 15 to 35 minutes "+
		"on two cores\n", len(missing))
	for i, m := range missing {
		fmt.Printf("building %s (%d of %d)\n", m.Name, i+1, len(missing))
		built := sayEach(time.Minute, os.Stdout, "building "+m.Name)
		err := m.Build(ctx, root, c.Path("bin"), os.Stdout)
		built()
		if err != nil {
			return err
		}
	}
	return nil
}

// sayEach prints how long something has taken, each time an interval is over, until the returned function is called.
func sayEach(interval time.Duration, out io.Writer, what string) (end func()) {
	began, done, ended := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(out, "still %s after %v\n", what, time.Since(began).Round(time.Second))
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// copyProduct takes copies of the binaries, so that building again does not pull them away from under what runs.
func (c *Cluster) copyProduct(context.Context) error {
	for _, name := range []string{"cnsbench", "cnsbench-agent"} {
		from := filepath.Join(c.Repo, "bin", name)
		if _, err := os.Stat(from); err != nil {
			return fmt.Errorf("%w; build it with: make build", err)
		}
		if err := copyChanged(from, c.Bin(name)); err != nil {
			return err
		}
	}
	return nil
}

func copyChanged(from, to string) error {
	a, err := digest(from)
	if err != nil {
		return err
	}
	if b, err := digest(to); err == nil && a == b {
		return nil
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(to+".new", text, 0o755); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)[:16]), err
}

func (c *Cluster) machineFile() string { return c.Path("machine.json") }

// remember keeps what the machine is like, for Down. One that is up has changed it already.
func (c *Cluster) remember(context.Context) error {
	if _, err := os.Stat(c.stateFile()); err == nil {
		return nil
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	return machine.Root{}.Remember(c.machineFile())
}

func (c *Cluster) prepare(context.Context) error {
	dirs := []string{settings.Run, c.Path("etc"), c.Path("truth"), c.Path("inject"), c.Path("driver"), c.Path("images"),
		c.Path("gateway", "iam"), c.Path("gateway", "meta"), c.Path("gateway", "data")}
	for _, n := range settings.Nodes() {
		dirs = append(dirs, filepath.Join(c.NodeDir(n), "kubelet"))
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for _, d := range settings.Drivers() {
		f, err := os.OpenFile(c.Path("inject", d.Backend+".yaml"), os.O_CREATE|os.O_RDONLY, 0o644)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(settings.Run, "state"), []byte(c.Dir+"\n"), 0o644)
}

// sidecarGroup is bound to the rights of the sidecars in the manifests.
const sidecarGroup = "testbed:sidecars"

func identities() []pki.Identity {
	all := []pki.Identity{
		{Name: "apiserver", CN: "kube-apiserver", Addrs: []string{settings.Host, settings.FirstService, "127.0.0.1"},
			Names: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc.cluster.local"}},
		{Name: "admin", CN: "admin", Groups: []string{"system:masters"}},
		{Name: "kubelet-client", CN: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}},
		{Name: "kcm", CN: "system:kube-controller-manager"},
		{Name: "scheduler", CN: "system:kube-scheduler"},
		{Name: "proxy", CN: "system:kube-proxy"},
		{Name: "snapshot-controller", CN: "snapshot-controller", Groups: []string{sidecarGroup}},
		{Name: "cosi", CN: "cosi", Groups: []string{sidecarGroup}},
	}
	for _, kind := range settings.Sidecars() {
		all = append(all, pki.Identity{Name: "csi-" + kind, CN: "csi-" + kind, Groups: []string{sidecarGroup}})
	}
	for _, n := range settings.Nodes() {
		all = append(all, pki.Identity{Name: n.Name, CN: "system:node:" + n.Name, Groups: []string{"system:nodes"},
			Addrs: []string{n.Addr}, Names: []string{n.Name}})
	}
	return all
}

func (c *Cluster) certificates(context.Context) error {
	a, err := pki.Open(c.Path("pki"))
	if err != nil {
		return err
	}
	if err := a.ServiceAccountKeys(); err != nil {
		return err
	}
	for _, id := range identities() {
		if err := a.Issue(id); err != nil {
			return err
		}
		if len(id.Addrs) > 0 && len(id.Groups) == 0 {
			continue // a server only
		}
		if err := a.Kubeconfig(c.Kubeconfig(id.Name), settings.Server(), id.Name); err != nil {
			return err
		}
	}
	return nil
}

// spec is what runs a part.
func (c *Cluster) spec(p parts.Part) (process.Spec, error) {
	program := c.Bin(p.Argv[0])
	info, err := os.Stat(program)
	if err != nil {
		return process.Spec{}, err
	}
	made := fmt.Sprint(info.ModTime().UnixNano())
	argv := append([]string{program}, p.Argv[1:]...)
	if p.Node != nil {
		// Not `ip netns exec`: that mounts another /sys and hides the cgroups.
		argv = append([]string{"nsenter", "--net=/run/netns/" + p.Node.Netns}, argv...)
	}
	if p.Argv[0] == "testbed" {
		made = "" // this very program: being built anew is no reason to start its helpers anew
	}
	inputs := p.Inputs() + " " + made
	if p.Follows != "" {
		leader, _, err := c.records.Get(p.Follows)
		if err != nil {
			return process.Spec{}, err
		}
		inputs += fmt.Sprintf(" %d %d", leader.PID, leader.Start)
	}
	return process.Spec{Name: p.Name, Argv: argv, Env: p.Env, Log: c.Log(p.Name), Inputs: inputs, Nice: p.Nice}, nil
}

// ensure starts a part unless it runs as it should; it says whether it did.
func (c *Cluster) ensure(p parts.Part) (bool, error) {
	for path, text := range p.Files {
		if err := writeChanged(path, text); err != nil {
			return false, err
		}
	}
	spec, err := c.spec(p)
	if err != nil {
		return false, err
	}
	old, ok, err := c.records.Get(p.Name)
	if err != nil {
		return false, err
	}
	if ok && old.Alive() {
		if old.Same(spec) {
			return false, nil
		}
		if err := c.records.Stop(old, patience); err != nil {
			return false, err
		}
	}
	_, err = c.records.Start(spec)
	return true, err
}

// writeChanged writes a file unless it has that content: kube-proxy ends when its configuration is written to.
func writeChanged(path, text string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// patience is how long a part has to end by itself.
const patience = 20 * time.Second

func (c *Cluster) start(ctx context.Context) error {
	for _, stage := range parts.Stages() {
		if err := c.before(ctx, stage); err != nil {
			return err
		}
		if err := c.startStage(ctx, c.partsOf(stage)); err != nil {
			return err
		}
	}
	return c.saveSettings()
}

func (c *Cluster) partsOf(stage parts.Stage) []parts.Part {
	return slices.DeleteFunc(parts.All(c.Layout, c.Settings), func(p parts.Part) bool { return p.Stage != stage })
}

func (c *Cluster) startStage(ctx context.Context, now []parts.Part) error {
	var started []string
	for _, p := range now {
		did, err := c.ensure(p)
		if err != nil {
			return err
		}
		if did {
			started = append(started, p.Name)
		}
	}
	if len(started) > 0 {
		fmt.Println("started", strings.Join(started, " "))
	}
	for _, p := range now {
		if err := c.waitFor(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// before does what a stage needs that is no process.
func (c *Cluster) before(ctx context.Context, stage parts.Stage) error {
	switch stage {
	case parts.Kubelets:
		return c.importImages(ctx)
	case parts.Services:
		if err := c.waitForKubelets(ctx); err != nil {
			return err
		}
		return c.applyManifests(ctx)
	}
	return nil
}

// Client is the administrator's.
func (c *Cluster) Client() (*api.Client, error) {
	return api.New(settings.Server(), c.Path("pki"), "admin")
}
