// Package protocol defines the messages between agent and runner: frames on one stream connection that the
// agent dials.
//
// A frame is the length of its header (4 bytes, big endian), the length of its body (4 bytes), the header
// (one Message in JSON) and the body (bytes of a file). Both lengths are bounded, so that a broken or hostile
// peer costs at most the memory of one frame.
//
// All times are nanoseconds of the clock of the side that took them. The runner converts in both directions
// (package clocksync); the agent only echoes the runner's clock, in Pong.
package protocol

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Proto is the version of the protocol. Peers with different versions disconnect with an error that names
// both.
const Proto = 6

// Version is the version of the program that this package is linked into; set
// by the build: -ldflags "-X github.com/cnsbench/cnsbench/internal/agent/protocol.Version=…".
var Version = "dev"

// Bounds of a frame.
const (
	MaxHeader = 1 << 20
	MaxBody   = 1 << 20
	Chunk     = 64 << 10 // bytes of a file per message: small, so that a clock exchange does not wait long behind it
	MaxHello  = 4 << 10  // header size from a peer that has not authenticated
)

// Magic identifies an agent's hello.
const Magic = "cnsbench-agent"

// The environment of `cnsbench-agent wrap`; the agent removes it from the command's environment.
const (
	EnvPrefix      = "CNSBENCH_AGENT_"
	EnvRunner      = EnvPrefix + "RUNNER"       // "unix:PATH" or "tls:HOST:PORT"
	EnvToken       = EnvPrefix + "TOKEN"        // token of one process
	EnvPin         = EnvPrefix + "PIN"          // SHA-256 of the runner's certificate, in hex
	EnvClockOffset = EnvPrefix + "CLOCK_OFFSET" // a duration, for tests
)

// Message is the header of a frame: exactly one pointer is set.
type Message struct {
	Hello        *Hello        `json:"hello,omitempty"`
	Welcome      *Welcome      `json:"welcome,omitempty"`
	Refuse       *Refuse       `json:"refuse,omitempty"`
	Ping         *Ping         `json:"ping,omitempty"`
	Pong         *Pong         `json:"pong,omitempty"`
	VolumeProbe  *VolumeProbe  `json:"touched,omitempty"`
	ProbeVolumes *ProbeVolumes `json:"touch,omitempty"` // runner: repeat the volume probes
	// agent: prepared; waits at its barrier or starts now
	Ready             *Stamp             `json:"ready,omitempty"`
	Go                *Stamp             `json:"go,omitempty"`      // runner: start at, on the agent's clock
	GoAck             *Stamp             `json:"goAck,omitempty"`   // agent: start time accepted
	Started           *Stamp             `json:"started,omitempty"` // agent: the process exists
	Signal            *Signal            `json:"signal,omitempty"`
	Log               *Log               `json:"log,omitempty"`
	File              *File              `json:"file,omitempty"`   // with Body; from the runner: of a FileSpec
	Cut               *Cut               `json:"cut,omitempty"`    // agent: bytes of a file are discarded
	Enough            *Enough            `json:"enough,omitempty"` // runner: send no more of a file
	Sample            *Sample            `json:"sample,omitempty"`
	SetLevel          *SetLevel          `json:"setLevel,omitempty"` // runner: of later samples
	Canary            *Canary            `json:"canary,omitempty"`
	Exit              *Exit              `json:"exit,omitempty"` // agent: nothing follows
	Bye               *Bye               `json:"bye,omitempty"`  // runner: Exit was received
	RendezvousRequest *RendezvousRequest `json:"meet,omitempty"` // agent: the process waits for its group
	RendezvousReply   *RendezvousReply   `json:"met,omitempty"`  // runner: the group continues

	// Body follows the header.
	Body []byte `json:"-"`
	// Received is when Conn.Read had the whole frame, on the reader's clock.
	Received int64 `json:"-"`
}

// Hello opens a connection. Its first four fields are the same in all versions of the protocol, so that both
// sides can report a mismatch.
type Hello struct {
	Magic   string `json:"magic"`
	Proto   int    `json:"proto"`
	Version string `json:"version"`
	Token   string `json:"token"`
	// Began is when the agent was started, on its clock.
	Began int64 `json:"began"`
	// BeganWall is the same instant on the machine's wall clock, in Unix ns; 0: unknown.
	BeganWall int64 `json:"beganWall,omitempty"`
	// Attempts is the number of dials until connected, DialNanos their total time.
	Attempts  int   `json:"attempts"`
	DialNanos int64 `json:"dialNanos"`
	// Machine is the boot ID of the machine; empty: unknown.
	Machine string `json:"machine,omitempty"`
}

// Welcome answers a Hello and configures the agent.
type Welcome struct {
	Proto   int    `json:"proto"`
	Version string `json:"version"`
	// Barrier that the process waits at; empty: start at once.
	Barrier string `json:"barrier,omitempty"`
	// Rendezvous: the process starts at once, waits at the barrier itself, and may wait for its group; see
	// package rendezvous.
	Rendezvous bool `json:"meets,omitempty"`
	// Outputs are glob patterns of files to stream, in the process's file system.
	Outputs []string `json:"outputs,omitempty"`
	// MaxOutput bounds the bytes sent of all files of the process (package quota); 0: no bound.
	MaxOutput int64 `json:"maxOutput,omitempty"`
	// SampleNanos is the sampling interval; 0: no samples.
	SampleNanos int64 `json:"sampleNanos,omitempty"`
	// SampleLevel says what a sample has, until a message SetLevel changes it.
	SampleLevel op.SampleLevel `json:"sampleLevel,omitempty"`
	// OwnCgroup: the control group of the agent is that of its container only.
	OwnCgroup bool `json:"ownCgroup,omitempty"`
	// LiveNanos is the interval in which the I/Os of canaries are sent, with those that are open; 0: the agent's
	// default, without open ones.
	LiveNanos int64 `json:"liveNanos,omitempty"`
	// SampleMachine adds the machine's counters to each sample.
	SampleMachine bool `json:"sampleMachine,omitempty"`
	// CountSyncs: Exit has the calls for durability of the process and its descendants.
	CountSyncs bool `json:"countSyncs,omitempty"`
	// GraceNanos is the time from SIGTERM to SIGKILL when the runner is lost.
	GraceNanos int64 `json:"graceNanos,omitempty"`
	// SilenceNanos is how long the runner may send nothing before it is lost; 0: the agent's default.
	SilenceNanos int64             `json:"silenceNanos,omitempty"`
	Probes       []VolumeProbeSpec `json:"touch,omitempty"` // before Ready
	// Volumes are file systems whose use samples have, besides those of Probes.
	Volumes []CanaryVolume `json:"volumes,omitempty"`
	// ProbeLater defers Probes to ProbeVolumes.
	ProbeLater bool `json:"touchLater,omitempty"`
	// Phase is when the process runs; nil: from the start until it exits.
	Phase  *Phase      `json:"phase,omitempty"`
	Canary *CanarySpec `json:"canary,omitempty"`
	// Files follow as File messages before Ready, each whole and in order.
	Files []FileSpec `json:"files,omitempty"`
}

// Phase is a part of the run, relative to the start that Go gives: the process starts at FromNanos and gets
// SIGTERM at UntilNanos (0: never) and SIGKILL GraceNanos later.
type Phase struct {
	FromNanos  int64 `json:"fromNanos,omitempty"`
	UntilNanos int64 `json:"untilNanos,omitempty"`
	GraceNanos int64 `json:"graceNanos,omitempty"`
}

// FileSpec is a file that the runner copies to the agent.
type FileSpec struct {
	Path string `json:"path"` // absolute
	Size int64  `json:"size"`
	Mode uint32 `json:"mode"` // permission bits
}

// VolumeProbeSpec asks for the first I/O on one volume. It leaves nothing on the volume.
type VolumeProbeSpec struct {
	Volume string `json:"volume"`           // name in the bundle
	Path   string `json:"path"`             // a directory on it, or its device
	Write  bool   `json:"write,omitempty"`  // a durable write of 4 KiB; never done to a device
	Read   bool   `json:"read,omitempty"`   // a read of existing data
	Device bool   `json:"device,omitempty"` // Path is a block device
}

// ProbeVolumes asks to repeat all probes while the process runs.
type ProbeVolumes struct{}

// VolumeProbe reports one I/O of a VolumeProbeSpec, also a failed one.
type VolumeProbe struct {
	Volume  string `json:"volume"`
	Write   bool   `json:"write,omitempty"`
	Began   int64  `json:"began"`
	At      int64  `json:"at"` // completed or failed
	Errno   int    `json:"errno,omitempty"`
	Message string `json:"message,omitempty"` // error text; empty on success
}

// CanarySpec asks for a canary on each of Volumes.
type CanarySpec struct {
	IntervalNanos int64          `json:"intervalNanos"`
	Size          int            `json:"size"` // bytes, a multiple of 4096
	Read          bool           `json:"read"`
	Write         bool           `json:"write"`
	Volumes       []CanaryVolume `json:"volumes"`
}

// CanaryVolume is one volume in the process's file system.
type CanaryVolume struct {
	Name string `json:"name"` // name in the bundle
	Path string `json:"path"` // a directory on it, or its device
}

// Refuse rejects a connection in place of a Welcome.
type Refuse struct {
	Reason string `json:"reason"`
}

// Ping starts a clock exchange. Conn.Write sets Sent.
type Ping struct {
	Sent int64 `json:"sent"`
}

// Pong answers a Ping. Conn.Write sets Sent.
type Pong struct {
	Ping     int64 `json:"ping"`     // Ping.Sent, returned
	Received int64 `json:"received"` // when the Ping was read
	Sent     int64 `json:"sent"`
}

// Stamp is an instant of the agent's clock.
type Stamp struct {
	At int64 `json:"at"`
	// Within is how much earlier the instant may have been: a started command may run before the agent is
	// scheduled again.
	Within int64 `json:"within,omitempty"`
}

// Signal is sent to the process; after GraceNanos (if > 0) the remaining processes are killed.
type Signal struct {
	Number     int   `json:"number"`
	GraceNanos int64 `json:"graceNanos,omitempty"`
}

// Log is a log line of the agent.
type Log struct {
	Line string `json:"line"`
}

// File delivers bytes of a file at Offset, in order. Name is the path of the FileSpec when the runner sends
// it.
type File struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"`
}

// Cut reports that bytes of a file are discarded after those that were sent: once when that begins, and once,
// with Final, before Exit.
type Cut struct {
	Name      string `json:"name"`
	Discarded int64  `json:"discarded"` // so far
	Final     bool   `json:"final,omitempty"`
}

// Enough asks the agent to discard the rest of a file.
type Enough struct {
	Name string `json:"name"`
}

// Names of the standard output and standard error of the process.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// Sample is a cumulative reading of the process tree.
type Sample struct {
	At         int64 `json:"at"`
	ReadBytes  int64 `json:"readBytes"`
	WriteBytes int64 `json:"writeBytes"`
	ReadOps    int64 `json:"readOps"`
	WriteOps   int64 `json:"writeOps"`
	CPUNanos   int64 `json:"cpuNanos"`
	RSSBytes   int64 `json:"rssBytes"`
	// Level is that of the reading. At SampleNone it has the machine's counters only.
	Level op.SampleLevel `json:"level,omitempty"`
	// SamplerNanos is the CPU time that sampling has taken so far, without this message.
	SamplerNanos int64 `json:"samplerNanos,omitempty"`
	// Uncounted says why ReadBytes and WriteBytes may lack I/O; empty: they have all.
	Uncounted op.Unobserved    `json:"uncounted,omitempty"`
	Detail    *op.SampleDetail `json:"detail,omitempty"`
	// Machine has the counters of the machine if Welcome.SampleMachine is set.
	Machine *op.MachineCounters `json:"machine,omitempty"`
	// WallNanos is the machine's wall clock at At, in Unix ns; 0: unknown.
	WallNanos int64 `json:"wall,omitempty"`
}

// SetLevel changes what later samples have.
type SetLevel struct {
	Level op.SampleLevel `json:"level"`
}

// Canary delivers I/Os of one volume in order of their intended time.
type Canary struct {
	Volume  string     `json:"volume"`
	IOs     []CanaryIO `json:"ios"`
	Dropped int64      `json:"dropped,omitempty"` // intended but never issued, so far
	// Open are the I/Os due at OpenAt that a later message has in IOs: those without an end, and those behind them.
	Open   []CanaryIO `json:"open,omitempty"`
	OpenAt int64      `json:"openAt,omitempty"` // 0: Open was not asked for
}

// Never is the time of an event that did not happen.
const Never = math.MinInt64

// CanaryIO is one I/O; Started and Ended are Never if the agent ended first.
type CanaryIO struct {
	Intended int64 `json:"i"`
	Started  int64 `json:"s"`
	Ended    int64 `json:"e"`
	Write    bool  `json:"w,omitempty"`
	Errno    int   `json:"n,omitempty"`
}

// Exit is how the process ended. It is the agent's last message.
type Exit struct {
	At       int64 `json:"at"`
	Started  bool  `json:"started"` // the process existed
	ExitCode int   `json:"exitCode"`
	Signal   int   `json:"signal,omitempty"`
	// Ours reports that the runner requested the signal or the end.
	Ours bool `json:"ours,omitempty"`
	OOM  bool `json:"oom,omitempty"`
	// PhaseOver reports that the process was ended, or not started, because its phase was over, which is no
	// failure.
	PhaseOver bool `json:"phaseOver,omitempty"`
	// Syncs are its calls for durability, if Welcome.CountSyncs asked for them and the process existed.
	Syncs *op.Syncs `json:"syncs,omitempty"`
	// Code and Message say why the process could not run.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// Codes of an Exit without a process.
const (
	CodeNoProgram = "ProgramMissing" // command not found
	CodeSandbox   = "JailFailed"     // the sandbox could not be set up
	CodeExec      = "ExecFailed"     // the command could not be executed
)

// RendezvousRequest reports that the process waits at a rendezvous. ID is chosen by the process.
type RendezvousRequest struct {
	ID int64 `json:"id"`
	Rendezvous
}

// Rendezvous is one step of a group. It takes place when each of the members (numbered from 0) has reached
// this step or a later one, or has ended or is lost. A member that arrives afterwards continues at once.
type Rendezvous struct {
	Group   string `json:"group"`
	Step    int    `json:"step"`
	Index   int    `json:"index"`
	Members int    `json:"members"`
	// Failed: this member has failed; all members receive it.
	Failed bool `json:"failed,omitempty"`
}

// RendezvousReply answers a RendezvousRequest.
type RendezvousReply struct {
	ID int64 `json:"id"`
	// At is when all members continue, on the agent's clock.
	At int64 `json:"at"`
	// Present are the remaining members; Failed reports whether a member failed or left without success.
	Present []int `json:"present,omitempty"`
	Failed  bool  `json:"failed,omitempty"`
}

// Bye acknowledges Exit.
type Bye struct{}

// ErrTooLong is returned for a frame that exceeds the bounds.
var ErrTooLong = errors.New("frame exceeds the protocol's limit")

// Conn sends and receives messages on a stream. Read is for one goroutine, Write for any number.
type Conn struct {
	rw  io.ReadWriteCloser
	now func() int64
	in  []byte // header buffer of Read

	mu  sync.Mutex
	out []byte
}

// NewConn returns a Conn over rw, which Close closes; now is the clock of this side.
func NewConn(rw io.ReadWriteCloser, now func() int64) *Conn {
	return &Conn{rw: rw, now: now}
}

// Close closes the stream; pending Reads and Writes return.
func (c *Conn) Close() error { return c.rw.Close() }

// Write sends one message. It blocks while the peer does not read. It sets Sent of a Ping or Pong after
// waiting for other writers.
func (c *Conn) Write(m Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Ping != nil {
		m.Ping.Sent = c.now()
	}
	if m.Pong != nil {
		m.Pong.Sent = c.now()
	}
	var err error
	if c.out, err = Append(c.out[:0], m); err != nil {
		return err
	}
	_, err = c.rw.Write(c.out)
	return err
}

// Read receives one message; the caller owns its Body. At the end of the stream the error is io.EOF.
func (c *Conn) Read() (Message, error) {
	m, err := Decode(c.rw, &c.in)
	m.Received = c.now()
	return m, err
}

// ReadHello receives a first message of at most MaxHello bytes, from a peer that has not authenticated.
func (c *Conn) ReadHello() (Message, error) {
	m, err := decode(c.rw, &c.in, MaxHello, 0)
	m.Received = c.now()
	return m, err
}

// Append appends the encoded m to b.
func Append(b []byte, m Message) ([]byte, error) {
	header, err := json.Marshal(m)
	if err != nil {
		return b, fmt.Errorf("protocol: %w", err)
	}
	if len(header) > MaxHeader || len(m.Body) > MaxBody {
		return b, fmt.Errorf("protocol: header %d, body %d bytes: %w", len(header), len(m.Body), ErrTooLong)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(header)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(m.Body)))
	b = append(b, header...)
	return append(b, m.Body...), nil
}

// Decode reads one message from r; buf is scratch space kept between calls. The error is io.EOF between
// frames and io.ErrUnexpectedEOF within one.
func Decode(r io.Reader, buf *[]byte) (Message, error) { return decode(r, buf, MaxHeader, MaxBody) }

func decode(r io.Reader, buf *[]byte, maxHeader, maxBody uint32) (Message, error) {
	var m Message
	var lengths [8]byte
	if _, err := io.ReadFull(r, lengths[:]); err != nil {
		return m, err
	}
	head, body := binary.BigEndian.Uint32(lengths[:4]), binary.BigEndian.Uint32(lengths[4:])
	if head > maxHeader || body > maxBody {
		return m, fmt.Errorf("protocol: header %d, body %d bytes: %w", head, body, ErrTooLong)
	}
	if cap(*buf) < int(head) {
		*buf = make([]byte, head)
	}
	header := (*buf)[:head]
	if _, err := io.ReadFull(r, header); err != nil {
		return m, unexpectedEOF(err)
	}
	if err := json.Unmarshal(header, &m); err != nil {
		return Message{}, fmt.Errorf("protocol: header: %w", err)
	}
	if body > 0 {
		m.Body = make([]byte, body)
		if _, err := io.ReadFull(r, m.Body); err != nil {
			return Message{}, unexpectedEOF(err)
		}
	}
	return m, nil
}

// unexpectedEOF converts io.EOF within a frame.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
