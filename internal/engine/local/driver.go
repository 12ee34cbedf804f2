package local

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/quota"
)

const (
	ourSuffix = ".csi.cnsbench.dev"
	// optionPrefix marks StorageClass parameters that are options of our
	// driver's process and not of a volume.
	optionPrefix = "driver.cnsbench.dev/"
	// reservedPrefix marks parameters that the provisioner sidecar eats.
	reservedPrefix = "csi.storage.k8s.io/"

	driverStart = 60 * time.Second // mkfs of a pool on a slow disk
	driverStop  = 15 * time.Second
)

// driver is a connection to one CSI driver and, when it is ours, its process.
type driver struct {
	engine  *Engine
	name    string // provisioner
	backend string // of ours; empty: somebody else's
	socket  string
	baseDir string

	conn       *grpc.ClientConn
	identity   csi.IdentityClient
	controller csi.ControllerClient
	nodeClient csi.NodeClient
	groups     csi.GroupControllerClient
	info       *csi.GetPluginInfoResponse
	nodeID     string
	controls   map[csi.ControllerServiceCapability_RPC_Type]bool
	nodes      map[csi.NodeServiceCapability_RPC_Type]bool
	grouping   bool

	process *os.Process
	exited  chan struct{}
	exit    error
	stderr  tail
	closing sync.Once
	stopped chan struct{} // closed when we ask it to end: its end is no fault then
	listens atomic.Bool   // it has started: its end before is the failure of that
	silent  atomic.Bool   // a call found nobody: Lost asks again
}

// openDrivers makes a driver for every provisioner that a StorageClass names.
func (e *Engine) openDrivers(ctx context.Context) error {
	options, err := e.driverOptions()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		d := &driver{engine: e, name: name, socket: e.Endpoint, exited: make(chan struct{}), stopped: make(chan struct{})}
		e.drivers[name] = d
		if e.Endpoint == "" {
			if err := d.start(ctx, options[name]); err != nil {
				return fmt.Errorf("%s: %w", d.title(), err)
			}
		}
		if err := d.connect(ctx); err != nil {
			return fmt.Errorf("%s: %w", d.title(), d.why(err))
		}
	}
	return nil
}

// Processes has that of a driver which serves a socket of the user's.
func (e *Engine) Processes() []int {
	if e.Endpoint == "" {
		return nil
	}
	c, err := (&net.Dialer{}).DialContext(e.ctx, "unix", e.Endpoint)
	if err != nil {
		return nil // it is lost, which others notice
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil
	}
	var pids []int
	_ = raw.Control(func(fd uintptr) { // its error is that of a closed connection
		if peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil && peer.Pid > 0 {
			pids = append(pids, int(peer.Pid))
		}
	})
	return pids
}

// title is what messages call the driver. A StorageClass that leaves the
// choice to --csi-endpoint names none.
func (d *driver) title() string { return "driver " + cmp.Or(d.name, d.info.GetName(), "at "+d.socket) }

// driverOptions lists the provisioners in use with the options their classes
// give to our drivers.
func (e *Engine) driverOptions() (map[string]map[string]string, error) {
	all := map[string]map[string]string{}
	for _, class := range slices.Sorted(maps.Keys(e.session.StorageClasses)) {
		sc := e.session.StorageClasses[class]
		if all[sc.Provisioner] == nil {
			all[sc.Provisioner] = map[string]string{}
		}
		for k, v := range sc.Parameters {
			name, ours := strings.CutPrefix(k, optionPrefix)
			if !ours {
				continue
			}
			if had, ok := all[sc.Provisioner][name]; ok && had != v {
				return nil, fmt.Errorf("StorageClass %s: %s is %q, but another class of %s says %q; one driver process serves both, so give it once", class, k, v, sc.Provisioner, had)
			}
			all[sc.Provisioner][name] = v
		}
	}
	return all, nil
}

// start runs one of our drivers and waits for its socket.
func (d *driver) start(ctx context.Context, options map[string]string) error {
	backend, ours := strings.CutSuffix(d.name, ourSuffix)
	if !ours {
		return fmt.Errorf("provisioner %q is not one of ours; give the socket of its driver with --csi-endpoint", d.name)
	}
	s := d.engine.session
	d.backend = backend
	runDir, err := d.engine.own.StorageDir()
	if err != nil {
		return err
	}
	d.baseDir = filepath.Join(runDir, backend)
	d.socket = filepath.Join(s.Dir, backend+".sock")
	entry := op.LedgerEntry{Kind: "driver", Name: backend, Data: map[string]string{"baseDir": d.baseDir}}
	if err := s.Ledger.Add(entry); err != nil {
		return err
	}
	if err := d.engine.makeBase(d.baseDir); err != nil {
		return fmt.Errorf("storage directory: %w (choose another with --storage-dir)", err)
	}
	args := append(slices.Clone(d.engine.DriverCommand[1:]),
		"--backend", backend, "--socket", d.socket, "--base-dir", d.baseDir, "--node-id", d.engine.node,
		"--truth-log", d.truthLog(), "--seed", strconv.FormatUint(d.engine.Seed, 10))
	if d.engine.Inject != "" {
		args = append(args, "--inject", d.engine.Inject)
	}
	for _, k := range slices.Sorted(maps.Keys(options)) {
		args = append(args, "--"+k, options[k])
	}
	if err := d.spawn(exec.CommandContext(d.engine.ctx, d.engine.DriverCommand[0], args...)); err != nil {
		return err
	}
	// One that has ended already needs no mark: awaitSocket says why it ended.
	if err := pod.Mark(entry.Data, d.process.Pid); err == nil {
		if err := s.Ledger.Add(entry); err != nil {
			return err
		}
	}
	return d.awaitSocket(ctx)
}

// makeBase makes a driver's base directory, and the run's above it with the mark
// of the run. The storage directory itself must be there: a misspelt one would be
// on another disk.
func (e *Engine) makeBase(dir string) error {
	run := filepath.Dir(dir)
	err := e.own.Make(run, 0o755)
	if errors.Is(err, os.ErrExist) { // by another driver of this run
		err = e.own.Owns(run)
	}
	if err != nil {
		return err
	}
	return os.Mkdir(dir, 0o755)
}

func (d *driver) truthLog() string {
	return filepath.Join(d.engine.session.Dir, d.backend+"-truth.jsonl")
}

// spawn starts the process from a thread that lives as long as it does, so
// that the kernel ends it when this process dies and not before.
func (d *driver) spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Env = append(os.Environ(), d.engine.own.Environment())
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		d.follow(stderr)
		d.exit = cmd.Wait()
		close(d.exited)
		select {
		case <-d.stopped:
		default:
			if d.listens.Load() {
				d.engine.session.Sink.Failed(d.ended())
			}
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	d.process = cmd.Process
	return nil
}

// follow passes the driver's log on, as much of it as a log has room for, and
// keeps its last lines.
func (d *driver) follow(r io.Reader) {
	log := func(line string) { d.engine.session.Sink.Log("driver "+d.name, line) }
	room := quota.NewLines(quota.OneSource)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		d.stderr.add(lines.Text())
		switch ok, last := room.Take(lines.Text()); {
		case ok:
			log(lines.Text())
		case last:
			log("further lines are left out: this log has the first MiB")
		}
	}
	_, _ = io.Copy(io.Discard, r)
}

func (d *driver) awaitSocket(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, driverStart)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		// Dialled, since the file is there a moment before anyone listens.
		if conn, err := (&net.Dialer{}).DialContext(ctx, "unix", d.socket); err == nil {
			d.listens.Store(true)
			return conn.Close()
		}
		select {
		case <-d.exited:
			return d.why(errors.New("it did not start"))
		case <-ctx.Done():
			return d.why(fmt.Errorf("it did not open its socket within %v", driverStart))
		case <-tick.C:
		}
	}
}

func (d *driver) ended() error {
	return d.why(errors.New("the CSI driver " + d.name + " ended in mid-run"))
}

// suspect marks the driver when a call found nobody.
func (d *driver) suspect(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if status.Code(err) == codes.Unavailable {
		d.silent.Store(true)
	}
	return err
}

// Lost implements engine.Prober: a driver that was not to be reached, and still
// is not, is gone. One that only answers Unavailable to some calls is not.
func (e *Engine) Lost(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(e.drivers)) {
		if err := e.drivers[name].lost(ctx); err != nil {
			return err
		}
	}
	return nil
}

// reapLimit is how long after its sockets a process that dies may end.
const reapLimit = time.Second

func (d *driver) lost(ctx context.Context) error {
	if !d.silent.Load() {
		return nil
	}
	_, err := d.identity.Probe(ctx, &csi.ProbeRequest{})
	if status.Code(err) != codes.Unavailable {
		return nil
	}
	if d.process == nil {
		return fmt.Errorf("%s does not answer any more: %w", d.title(), err)
	}
	select {
	case <-d.exited:
		return d.ended()
	case <-time.After(reapLimit):
		return d.why(fmt.Errorf("%s does not answer any more: %w", d.title(), err))
	}
}

// why adds to an error what is known of the process.
func (d *driver) why(err error) error {
	if d.process == nil {
		return err
	}
	select {
	case <-d.exited:
		if d.exit != nil {
			err = fmt.Errorf("%w (%w)", err, d.exit)
		}
	default:
	}
	if last := d.stderr.text(); last != "" {
		err = fmt.Errorf("%w: %s", err, last)
	}
	return err
}

// connect dials the driver and asks who it is and what it offers.
func (d *driver) connect(ctx context.Context) error {
	if d.backend == "" {
		if scheme, _, other := strings.Cut(d.socket, "://"); other {
			return fmt.Errorf("--csi-endpoint %s: %s is not spoken; give a unix socket, as a path or unix:///path", d.socket, scheme)
		}
		if _, err := os.Stat(d.socket); err != nil {
			return fmt.Errorf("no driver listens on %s: %w; start it, or mend --csi-endpoint", d.socket, err)
		}
	}
	conn, err := grpc.NewClient("unix://"+d.socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(),
		grpc.WithChainUnaryInterceptor(d.suspect, d.engine.traceRPC))
	if err != nil {
		return err
	}
	d.conn = conn
	d.identity, d.controller = csi.NewIdentityClient(conn), csi.NewControllerClient(conn)
	d.nodeClient, d.groups = csi.NewNodeClient(conn), csi.NewGroupControllerClient(conn)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if d.info, err = d.identity.GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}); err != nil {
		return fmt.Errorf("GetPluginInfo on %s: %w", d.socket, err)
	}
	if probe, err := d.identity.Probe(ctx, &csi.ProbeRequest{}); err != nil {
		return fmt.Errorf("Probe: %w", err)
	} else if probe.GetReady() != nil && !probe.GetReady().GetValue() {
		return errors.New("Probe: the driver says it is not ready")
	}
	return d.learn(ctx)
}

// learn asks for the capabilities of all three services.
func (d *driver) learn(ctx context.Context) error {
	d.controls, d.nodes = map[csi.ControllerServiceCapability_RPC_Type]bool{}, map[csi.NodeServiceCapability_RPC_Type]bool{}
	plugin, err := d.identity.GetPluginCapabilities(ctx, &csi.GetPluginCapabilitiesRequest{})
	if err != nil {
		return fmt.Errorf("GetPluginCapabilities: %w", err)
	}
	for _, c := range plugin.GetCapabilities() {
		if c.GetService().GetType() == csi.PluginCapability_Service_GROUP_CONTROLLER_SERVICE {
			d.grouping = true
		}
	}
	controls, err := d.controller.ControllerGetCapabilities(ctx, &csi.ControllerGetCapabilitiesRequest{})
	if err != nil {
		return fmt.Errorf("ControllerGetCapabilities: %w", err)
	}
	for _, c := range controls.GetCapabilities() {
		d.controls[c.GetRpc().GetType()] = true
	}
	nodes, err := d.nodeClient.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
	if err != nil {
		return fmt.Errorf("NodeGetCapabilities: %w", err)
	}
	for _, c := range nodes.GetCapabilities() {
		d.nodes[c.GetRpc().GetType()] = true
	}
	node, err := d.nodeClient.NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	if err != nil {
		return fmt.Errorf("NodeGetInfo: %w", err)
	}
	d.nodeID = node.GetNodeId()
	return nil
}

// offers says whether the driver has what ops of a kind need.
func (d *driver) offers(k op.Kind) bool {
	offered := actions[k].offered
	return offered == nil || offered(d)
}

// checkNeeds refuses a plan that no driver in use can carry out.
func (e *Engine) checkNeeds() error {
	var missing []string
	for k := range e.session.Needs.Kinds {
		if !e.anyDriver(func(d *driver) bool { return d.offers(k) }) {
			missing = append(missing, string(k))
		}
	}
	if e.session.Needs.Features["groupSnapshot"] && !e.anyDriver(func(d *driver) bool { return d.grouping }) {
		missing = append(missing, "group snapshot")
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	var titles []string
	for _, name := range slices.Sorted(maps.Keys(e.drivers)) {
		titles = append(titles, e.drivers[name].title())
	}
	return fmt.Errorf("%s: not offered by %s", strings.Join(missing, ", "), strings.Join(titles, ", "))
}

func (e *Engine) anyDriver(f func(*driver) bool) bool {
	for _, d := range e.drivers {
		if f(d) {
			return true
		}
	}
	return len(e.drivers) == 0
}

func (d *driver) describe() map[string]any {
	offered := []string{}
	for c := range d.controls {
		offered = append(offered, c.String())
	}
	for c := range d.nodes {
		offered = append(offered, "NODE_"+c.String())
	}
	slices.Sort(offered)
	return map[string]any{"provisioner": d.name, "name": d.info.GetName(), "version": d.info.GetVendorVersion(),
		"manifest": d.info.GetManifest(), "endpoint": d.socket, "ours": d.backend != "", "baseDir": d.baseDir,
		"groupSnapshot": d.grouping, "capabilities": offered}
}

// close ends the connection and, when it is ours, the process; its log of the
// truth goes into the bundle.
func (d *driver) close() error {
	var err error
	d.closing.Do(func() {
		close(d.stopped)
		if d.conn != nil {
			err = d.conn.Close()
		}
		if d.process == nil {
			return
		}
		err = errors.Join(err, d.end())
		d.keepTruth()
	})
	return err
}

// end asks the process to stop, and kills it when it does not.
func (d *driver) end() error {
	_ = d.process.Signal(syscall.SIGTERM)
	select {
	case <-d.exited:
		return nil
	case <-time.After(driverStop):
	}
	_ = d.process.Kill()
	<-d.exited
	return fmt.Errorf("driver %s did not stop within %v and was killed", d.name, driverStop)
}

func (d *driver) keepTruth() {
	f, err := os.Open(d.truthLog())
	if err != nil {
		return
	}
	defer f.Close()
	buf := make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			d.engine.session.Sink.Output(engine.DriverOutput, d.backend, "truth.jsonl", slices.Clone(buf[:n]))
		}
		if err != nil {
			return
		}
	}
}

// driverOf finds the driver of a provisioner; with an endpoint there is one
// for all.
func (e *Engine) driverOf(provisioner string) (*driver, error) {
	if d, ok := e.drivers[provisioner]; ok {
		return d, nil
	}
	return nil, &engine.Error{Code: "NotFound", Message: fmt.Sprintf("no driver for provisioner %q", provisioner)}
}

// tail keeps the last few lines of a log.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	if len(t.lines) > 5 {
		t.lines = t.lines[1:]
	}
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "; ")
}
