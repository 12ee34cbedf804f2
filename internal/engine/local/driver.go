package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/quota"
)

const (
	builtinSuffix = ".csi.cnsbench.dev"
	// optionPrefix marks StorageClass parameters that are options of a built-in driver's process, not of a
	// volume.
	optionPrefix = "driver.cnsbench.dev/"

	driverStart = 60 * time.Second // mkfs of a pool on a slow disk
	driverStop  = 15 * time.Second
)

// openDrivers opens a driver for every provisioner of a StorageClass.
func (e *Engine) openDrivers(ctx context.Context) error {
	if err := e.nameDriver(ctx); err != nil {
		return err
	}
	options, err := e.driverOptions()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if e.drivers[name] != nil {
			continue // named by nameDriver
		}
		if socket, external := e.Endpoints[name]; external {
			if _, err := e.connectExternal(ctx, name, socket); err != nil {
				return err
			}
			continue
		}
		d := newDriver(e, name, "")
		e.drivers[name] = d
		if err := d.start(ctx, options[name]); err != nil {
			return fmt.Errorf("%s: %w", d.title(), err)
		}
		if err := d.connect(ctx); err != nil {
			return fmt.Errorf("%s: %w", d.title(), d.withProcessState(err))
		}
	}
	return nil
}

func newDriver(e *Engine, name, socket string) *driver {
	return &driver{engine: e, name: name, socket: socket, exited: make(chan struct{}), stopped: make(chan struct{})}
}

// connectExternal connects to a driver that the engine does not start, and adds it by the name that it gives itself.
// provisioner is the name that it must have; empty: any.
func (e *Engine) connectExternal(ctx context.Context, provisioner, socket string) (*driver, error) {
	d := newDriver(e, provisioner, socket)
	if err := d.connect(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", d.title(), err)
	}
	name := d.info.GetName()
	if provisioner != "" && name != provisioner {
		return nil, errors.Join(d.close(), fmt.Errorf("the driver at %s is %s, not %s: correct --csi-endpoint or "+
			"spec.csiEndpoints", socket, name, provisioner))
	}
	d.name = name
	e.drivers[name] = d
	return d, nil
}

// nameDriver connects to the driver whose provisioner was not known when the plan was made, and gives it the
// StorageClasses without a provisioner.
func (e *Engine) nameDriver(ctx context.Context) error {
	socket, ok := e.Endpoints[""]
	if !ok || len(e.session.StorageClasses) == 0 {
		return nil
	}
	d, err := e.connectExternal(ctx, "", socket)
	if err != nil {
		return err
	}
	for name, sc := range e.session.StorageClasses {
		if sc.Provisioner == "" {
			sc.Provisioner = d.name
			e.session.StorageClasses[name] = sc
		}
	}
	return nil
}

// external says that the engine does not start the driver.
func (d *driver) external() bool { return d.backend == "" }

// anyExternal says whether the run uses a driver that the engine does not start.
func (e *Engine) anyExternal() bool {
	for _, d := range e.drivers {
		if d.external() {
			return true
		}
	}
	return false
}

// Processes returns the PIDs of external drivers that serve a local socket.
func (e *Engine) Processes() (pids []int) {
	for _, name := range slices.Sorted(maps.Keys(e.drivers)) {
		if d := e.drivers[name]; d.external() {
			pids = append(pids, d.peer()...)
		}
	}
	return pids
}

// peer returns the PID of the process that serves the driver's socket.
func (d *driver) peer() []int {
	c, err := (&net.Dialer{}).DialContext(d.engine.ctx, "unix", d.socket)
	if err != nil {
		return nil // lost, which Lost detects
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil
	}
	var pids []int
	_ = raw.Control(func(fd uintptr) { // fails for a closed connection only
		if peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil && peer.Pid > 0 {
			pids = append(pids, int(peer.Pid))
		}
	})
	return pids
}

// driverOptions lists the provisioners in use with the options that their classes set for built-in drivers.
func (e *Engine) driverOptions() (map[string]map[string]string, error) {
	all := map[string]map[string]string{}
	for _, class := range slices.Sorted(maps.Keys(e.session.StorageClasses)) {
		sc := e.session.StorageClasses[class]
		if all[sc.Provisioner] == nil {
			all[sc.Provisioner] = map[string]string{}
		}
		for k, v := range sc.Parameters {
			name, ours := strings.CutPrefix(k, optionPrefix)
			if _, external := e.Endpoints[sc.Provisioner]; !ours || external {
				continue
			}
			if had, ok := all[sc.Provisioner][name]; ok && had != v {
				return nil, fmt.Errorf("StorageClass %s: %s is %q, but another class of %s has %q: one driver process serves both, set it once", class, k, v, sc.Provisioner, had)
			}
			all[sc.Provisioner][name] = v
		}
	}
	return all, nil
}

// start runs a built-in driver and waits for its socket.
func (d *driver) start(ctx context.Context, options map[string]string) error {
	backend, ours := strings.CutSuffix(d.name, builtinSuffix)
	if !ours {
		return fmt.Errorf("provisioner %q is not built in: set the socket of its driver with --csi-endpoint", d.name)
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
	if err := makeBase(d.baseDir); err != nil {
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
	// On an error it has already ended: awaitSocket returns why.
	if err := pod.SetProcess(entry.Data, d.process.Pid); err == nil {
		if err := s.Ledger.Add(entry); err != nil {
			return err
		}
	}
	return d.awaitSocket(ctx)
}

// makeBase creates a driver's base directory, and above it the run's. The storage directory itself must exist: a misspelt
// one might be on another disk.
func makeBase(dir string) error {
	err := os.Mkdir(filepath.Dir(dir), 0o755)
	if errors.Is(err, os.ErrExist) { // by another driver of this run
		err = owned.Owns(filepath.Dir(dir))
	}
	if err != nil {
		return err
	}
	return os.Mkdir(dir, 0o755)
}

func (d *driver) truthLog() string {
	return filepath.Join(d.engine.session.Dir, d.backend+"-truth.jsonl")
}

// spawn starts the process from a thread that lives as long, so that the kernel ends it when this process
// dies and not before (Pdeathsig).
func (d *driver) spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Env = append(os.Environ(), owned.Environment(d.engine.own.RunID))
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
		d.exitErr = cmd.Wait()
		close(d.exited)
		select {
		case <-d.stopped:
		default:
			if d.listening.Load() {
				d.thaw()
				d.engine.session.Sink.Failed(d.endedError())
			}
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	d.process = cmd.Process
	return nil
}

// thaw thaws file systems that the driver had frozen when it ended. Else nothing that writes to them could be stopped
// before the end of the run, which would wait for it.
func (d *driver) thaw() {
	for name, stage := range d.staged() {
		dir, err := os.Open(stage)
		if err != nil {
			continue // unstaged meanwhile
		}
		if unix.IoctlSetInt(int(dir.Fd()), fiThaw, 0) == nil { // EINVAL: not frozen
			d.engine.session.Sink.Log("driver "+d.name, "it ended while it had frozen volume "+name+", which was thawed")
		}
		_ = dir.Close()
	}
}

// fiThaw is FITHAW of linux/fs.h, which x/sys does not have.
const fiThaw = 0xc0045878

// staged returns where volumes are staged, by name: only there a built-in driver mounts a file system of their own.
func (d *driver) staged() map[string]string {
	d.engine.mu.Lock()
	defer d.engine.mu.Unlock()
	paths := map[string]string{}
	for name, v := range d.engine.volumes {
		if v.driver == d && !v.block() && v.is(&v.staged) {
			paths[name] = v.stagePath
		}
	}
	return paths
}

// follow logs the driver's output up to the log limit, and keeps its last lines.
func (d *driver) follow(r io.Reader) {
	log := func(line string) { d.engine.session.Sink.Log("driver "+d.name, line) }
	room := quota.NewLines(quota.OneSource)
	for l, err := range bounded.Lines(r, maxDriverLine) {
		if err != nil {
			return // the pipe is closed
		}
		line := l.String()
		d.stderr.add(line)
		switch ok, last := room.Take(line); {
		case ok:
			log(line)
		case last:
			log("further lines are " + quota.LimitReached)
		}
	}
}

// maxDriverLine bounds the kept bytes of one line of a driver's output.
const maxDriverLine = 8 << 10

func (d *driver) awaitSocket(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, driverStart)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		// Dial, since the file exists before the driver listens.
		if conn, err := (&net.Dialer{}).DialContext(ctx, "unix", d.socket); err == nil {
			d.listening.Store(true)
			return conn.Close()
		}
		select {
		case <-d.exited:
			return d.withProcessState(errors.New("did not start"))
		case <-ctx.Done():
			return d.withProcessState(fmt.Errorf("did not open its socket within %v", driverStart))
		case <-tick.C:
		}
	}
}

// deathNotice is how long a call that found no driver waits for the news that the driver has ended.
const deathNotice = 200 * time.Millisecond

// orEnded returns the error of a call, or that the built-in driver has ended, which is its cause. It does not wait if
// the driver itself has answered, which the details of its status show: such a call is measured.
func (d *driver) orEnded(ctx context.Context, rpc string, err error) error {
	if d.process == nil || len(status.Convert(err).Details()) > 0 {
		return err
	}
	select {
	case <-d.stopped:
		return err
	default:
	}
	select {
	case <-d.exited:
		return engine.Errorf(codes.Unavailable.String(), "%s: %v", rpc, d.endedError()).Wrap(err)
	case <-ctx.Done():
	case <-time.After(deathNotice):
	}
	return err
}

func (d *driver) endedError() error {
	return d.withProcessState(errors.New("the CSI driver " + d.name + " ended during the run"))
}

// noteUnavailable records that a call returned Unavailable.
func (d *driver) noteUnavailable(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if status.Code(err) == codes.Unavailable {
		d.unavailable.Store(true)
		return d.orEnded(ctx, path.Base(method), err)
	}
	return err
}

// Lost implements engine.Prober: a driver that was unavailable and still is, is lost. A driver that returns
// Unavailable to some calls only is not.
func (e *Engine) Lost(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(e.drivers)) {
		if err := e.drivers[name].lost(ctx); err != nil {
			return err
		}
	}
	return nil
}

// exitTimeout is how long a dying process may live after its sockets.
const exitTimeout = time.Second

func (d *driver) lost(ctx context.Context) error {
	if !d.unavailable.Load() {
		return nil
	}
	_, err := d.identity.Probe(ctx, &csi.ProbeRequest{})
	if status.Code(err) != codes.Unavailable {
		return nil
	}
	if d.process == nil {
		return fmt.Errorf("%s stopped responding: %w", d.title(), err)
	}
	select {
	case <-d.exited:
		return d.endedError()
	case <-time.After(exitTimeout):
		return d.withProcessState(fmt.Errorf("%s stopped responding: %w", d.title(), err))
	}
}

// withProcessState adds the exit status and the last output of the driver's process to an error.
func (d *driver) withProcessState(err error) error {
	if d.process == nil {
		return err
	}
	select {
	case <-d.exited:
		if d.exitErr != nil {
			err = fmt.Errorf("%w (%w)", err, d.exitErr)
		}
	default:
	}
	if last := d.stderr.text(); last != "" {
		err = fmt.Errorf("%w: %s", err, last)
	}
	return err
}

// CheckEndpoint fails unless an endpoint is a unix socket that exists. It does not connect.
func CheckEndpoint(endpoint string) error {
	path := SocketPath(endpoint)
	if scheme, _, other := strings.Cut(path, "://"); other {
		return fmt.Errorf("--csi-endpoint %s: unsupported scheme %s: want a unix socket, as a path or unix:///path",
			path, scheme)
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode().Type() != os.ModeSocket {
		err = errors.New("not a socket")
	}
	if err != nil {
		return fmt.Errorf("no driver listens on %s: %w: start it, or correct --csi-endpoint", path, err)
	}
	return nil
}

// DriverName returns the name that the driver at a socket gives itself.
func DriverName(ctx context.Context, socket string) (string, error) {
	if err := CheckEndpoint(socket); err != nil {
		return "", err
	}
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, nameTimeout)
	defer cancel()
	info, err := csi.NewIdentityClient(conn).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
	return info.GetName(), err
}

// nameTimeout bounds how long a driver is asked for its name before a run.
const nameTimeout = 5 * time.Second

// connect dials the driver and reads its identity and capabilities.
func (d *driver) connect(ctx context.Context) error {
	if d.backend == "" {
		if err := CheckEndpoint(d.socket); err != nil {
			return err
		}
	}
	conn, err := grpc.NewClient("unix://"+d.socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: connectTimeout}),
		grpc.WithChainUnaryInterceptor(d.repeat, d.noteUnavailable, d.engine.traceRPC))
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
		return errors.New("Probe: the driver is not ready")
	}
	return d.loadCapabilities(ctx)
}

// loadCapabilities reads the capabilities of all services.
func (d *driver) loadCapabilities(ctx context.Context) error {
	d.controllerCaps, d.nodeCaps = map[csi.ControllerServiceCapability_RPC_Type]bool{}, map[csi.NodeServiceCapability_RPC_Type]bool{}
	topological := false
	plugin, err := d.identity.GetPluginCapabilities(ctx, &csi.GetPluginCapabilitiesRequest{})
	if err != nil {
		return fmt.Errorf("GetPluginCapabilities: %w", err)
	}
	for _, c := range plugin.GetCapabilities() {
		switch c.GetService().GetType() {
		case csi.PluginCapability_Service_GROUP_CONTROLLER_SERVICE:
			d.grouping = true
		case csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS:
			topological = true
		}
	}
	controls, err := d.controller.ControllerGetCapabilities(ctx, &csi.ControllerGetCapabilitiesRequest{})
	if err != nil {
		return fmt.Errorf("ControllerGetCapabilities: %w", err)
	}
	for _, c := range controls.GetCapabilities() {
		d.controllerCaps[c.GetRpc().GetType()] = true
	}
	nodes, err := d.nodeClient.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
	if err != nil {
		return fmt.Errorf("NodeGetCapabilities: %w", err)
	}
	for _, c := range nodes.GetCapabilities() {
		d.nodeCaps[c.GetRpc().GetType()] = true
	}
	node, err := d.nodeClient.NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	if err != nil {
		return fmt.Errorf("NodeGetInfo: %w", err)
	}
	d.nodeID = node.GetNodeId()
	if t := node.GetAccessibleTopology(); topological && t != nil {
		d.topology = &csi.TopologyRequirement{Requisite: []*csi.Topology{t}, Preferred: []*csi.Topology{t}}
	}
	return nil
}

// offers says whether the driver has what ops of a kind need.
func (d *driver) offers(k op.Kind) bool {
	offered := actions[k].offered
	return offered == nil || offered(d)
}

// checkNeeds fails if no driver in use supports the plan.
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
	return fmt.Errorf("%s: not supported by %s", strings.Join(missing, ", "), strings.Join(titles, ", "))
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
	for c := range d.controllerCaps {
		offered = append(offered, c.String())
	}
	for c := range d.nodeCaps {
		offered = append(offered, "NODE_"+c.String())
	}
	slices.Sort(offered)
	return map[string]any{"provisioner": d.name, "name": d.info.GetName(), "version": d.info.GetVendorVersion(),
		"manifest": d.info.GetManifest(), "endpoint": d.socket, "ours": d.backend != "", "baseDir": d.baseDir,
		"groupSnapshot": d.grouping, "capabilities": offered}
}

// close closes the connection and ends a built-in driver's process, whose truth log goes into the bundle.
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
		err = errors.Join(err, d.terminate())
		d.saveTruthLog()
	})
	return err
}

// terminate asks the process to stop, and kills it after a timeout.
func (d *driver) terminate() error {
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

func (d *driver) saveTruthLog() {
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

// driverOf returns the driver of a provisioner.
func (e *Engine) driverOf(provisioner string) (*driver, error) {
	if d, ok := e.drivers[provisioner]; ok {
		return d, nil
	}
	return nil, &engine.Error{Code: "NotFound", Message: fmt.Sprintf("no driver for provisioner %q", provisioner)}
}
