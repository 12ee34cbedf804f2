package agent

import (
	"context"
	"io/fs"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/clocksync"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/agent/transport"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// ID identifies one container of one instance.
type ID struct{ Instance, Container string }

// String returns "instance/container".
func (id ID) String() string { return id.Instance + "/" + id.Container }

// Server accepts the connections of agents. Its methods are safe for concurrent use.
type Server struct {
	ctx      context.Context
	address  string              // the address that agents dial
	identity *transport.Identity // nil: a unix socket
	silence  time.Duration
	clock    op.Clock
	sink     engine.Sink
	every    time.Duration // see SetLive
	sampling op.Sampling   // see SetSampling; mu guards the level
	// ownCgroups: the control group of an agent is that of its container only.
	ownCgroups bool
	ln         net.Listener
	wg         sync.WaitGroup
	machine    string // boot ID of the runner's own machine, whose counters the runner reads itself

	unauthenticated connLimiter
	refusals        logLimiter

	mu sync.Mutex
	// helloWithin bounds the time from accept to welcome over TLS.
	helloWithin time.Duration
	sessions    map[string]*Session // by token, until the agent has connected
	spent       map[string]ID       // by token, of agents that have connected
	live        map[*Session]bool
	groups      map[string]*group
	instances   map[string]*instance
	machines    map[string]*Session // by boot ID: the session that reads the machine's counters
	closed      bool
}

// Options configure one agent.
type Options struct {
	// Barrier that the command waits at until Release; empty: the command starts at once.
	Barrier string
	// Rendezvous: the command starts at once, waits at the barrier itself, and may wait for other instances;
	// see package rendezvous.
	Rendezvous bool
	// CountSyncs: the end has the calls for durability of the command and its descendants.
	CountSyncs bool
	// Outputs are absolute glob patterns of files to stream, in the command's file system.
	Outputs []string
	// MaxOutput bounds the bytes of output that the agent sends (package quota); 0: no bound. The agent also
	// stops sending a file that the sink truncates.
	MaxOutput int64
	// Sample is the sampling interval; 0: that of SetSampling; negative: no samples.
	Sample time.Duration
	// Grace is the time from SIGTERM to SIGKILL if the runner is lost; 0: five seconds.
	Grace time.Duration
	// Probes asks for volume probes before Ready; see Session.VolumeProbes.
	Probes []protocol.VolumeProbeSpec
	// Volumes are file systems whose use samples have, besides those of Probes.
	Volumes []protocol.CanaryVolume
	// ProbeLater defers the probes to Session.ProbeVolumes.
	ProbeLater bool
	Canary     *protocol.CanarySpec
	// Phase is when the command runs; zero: no phase.
	Phase engine.Phase
	// Files are written by the agent before the command starts.
	Files []InputFile
	// Sink receives the agent's reports; nil: the server's sink. Log lines about the connection always go to
	// the server's sink.
	Sink engine.Sink
	// Offset shifts the agent's clock, for tests of the clock exchange.
	Offset time.Duration
}

// InputFile is a file that the runner copies to an agent.
type InputFile struct {
	Source string      // on this machine
	Path   string      // absolute, in the command's file system
	Mode   fs.FileMode // permission bits
}

// instance is the state shared by the containers of one instance, including ended ones.
type instance struct {
	last   map[string]op.Sample // by container
	tokens []string             // used tokens
}

// CodeLost is the code of a session whose agent disconnected without a report or sent nothing for
// transport.Silence.
const CodeLost = "AgentLost"

// Session is one agent: one container, from before its start until its last byte has arrived. Its methods are
// safe for concurrent use.
type Session struct {
	server *Server
	sink   engine.Sink
	id     ID
	opts   Options
	token  string
	clocks clocksync.Estimator

	machine string        // boot ID of the agent's machine; guarded by the server's mutex
	arrived chan struct{} // closed at the hello
	ready   chan struct{} // closed when the command waits at its barrier or is about to start
	started chan struct{}
	acked   chan struct{}
	done    chan struct{}

	pongs      chan protocol.Message
	out        *lineWriter
	errs       *lineWriter
	tail       tail
	enoughSent map[string]bool // files for which the agent was asked to stop

	mu       sync.Mutex
	conn     *protocol.Conn
	readyAt  stamp
	startAt  stamp
	intended op.Time
	end      End
	lost     error // cause of Abandon or of a failed read
	probes   []VolumeProbe
	reprobes chan<- VolumeProbe // results of ProbeVolumes; nil before its first call
	arrival  Arrival
	wall     *op.WallClock // of the agent's machine; nil: see op.InstanceStart

	// group and member are guarded by the server's mutex; see package rendezvous.
	group  string
	member int
}

// VolumeProbe is the first I/O on one volume, requested by Options.Probes.
type VolumeProbe struct {
	Volume string
	Write  bool
	Began  op.Time
	At     op.Time // completed or failed
	Err    int64   // ± of Began and At, in nanoseconds
	// Failure is the error text, Errno the kernel's error number if there is one (EROFS on a read-only file
	// system). Failure is empty on success.
	Failure string
	Errno   syscall.Errno
}

// Arrival describes how an agent connected.
type Arrival struct {
	Began    op.Time       // start of the agent's process
	Err      int64         // ± of Began, in nanoseconds
	Version  string        // of the agent
	Attempts int           // number of dials
	Dialing  time.Duration // total time of the dials
}

// stamp is an instant of the run with its ± error in nanoseconds.
type stamp struct {
	at  op.Time
	err int64
}

// End describes how a session ended.
type End struct {
	op.ContainerEnd
	At      op.Time // when the command ended or the agent was lost
	Err     int64   // ± of At, in nanoseconds
	Started bool    // the command ran
	Asked   bool    // the runner requested the end
	// Failure is the reason why there was no command or the agent was lost; nil when the command ran,
	// whatever its exit code.
	Failure *engine.Error
}

// OK reports whether the command exited with code 0 or was ended by its phase.
func (e End) OK() bool {
	return e.Failure == nil && (e.PhaseOver || e.Started && e.ExitCode == 0 && e.Signal == "")
}

// group is a set of commands that wait for each other; see package rendezvous.
type group struct {
	members int
	present map[int]waiter // the last step that each member has reached
	gone    map[int]bool
	failed  bool
	waiting []waiter
}

// waiter is one member that waits at a step.
type waiter struct {
	session *Session
	request protocol.RendezvousRequest
}

// Pin returns the SHA-256 of the runner's certificate in hex; empty with a unix socket.
func (s *Server) Pin() string {
	if s.identity == nil {
		return ""
	}
	return s.identity.Pin()
}

// assignMachine reports whether this agent reads the counters of its machine: one agent per machine does, and
// none on the runner's machine.
func (s *Server) assignMachine(sess *Session, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess.machine = id
	if s.identity == nil || id == "" || id == s.machine || s.machines[id] != nil {
		return false
	}
	s.machines[id] = sess
	return true
}
