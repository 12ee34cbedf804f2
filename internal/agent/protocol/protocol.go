// Package protocol is what the agent and the runner say to each other, and how:
// frames on one stream connection that the agent dials. It knows no clocks,
// no processes and no platform, and imports only package op.
//
// A frame is the length of its header (4 bytes, big endian), the length of
// its body (4 bytes), the header (one Message in JSON) and the body (bytes of
// an output file). Both lengths are bounded, so that a broken or hostile peer
// costs no more memory than one frame.
//
// All times on the wire are nanoseconds of the clock of the side that took
// them: the runner converts in both directions (package clocksync), the agent
// never sees the runner's clock except in Ping, whose content it does not read.
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

// Proto is the version of the protocol. Two sides that differ part with an
// error that names both.
const Proto = 5

// Version is the version of the program that this package is linked into; set
// by the build: -ldflags "-X github.com/cnsbench/cnsbench/internal/agent/protocol.Version=…".
var Version = "dev"

// Bounds of a frame, and what a sender puts into one at most.
const (
	MaxHeader = 1 << 20
	MaxBody   = 1 << 20
	Chunk     = 64 << 10 // of a file: small, so that a clock exchange is not stuck behind it
	MaxHello  = 4 << 10  // from a peer that nobody knows yet
)

// Magic is the first word of an agent.
const Magic = "cnsbench-agent"

// The environment of `cnsbench-agent wrap`; the command does not see it.
const (
	EnvPrefix      = "CNSBENCH_AGENT_"
	EnvRunner      = EnvPrefix + "RUNNER"       // "unix:PATH" or "tls:HOST:PORT"
	EnvToken       = EnvPrefix + "TOKEN"        // of the one process
	EnvPin         = EnvPrefix + "PIN"          // SHA-256 of the runner's certificate, in hex
	EnvClockOffset = EnvPrefix + "CLOCK_OFFSET" // a duration, for tests
)

// Message is the header of a frame: exactly one pointer is set.
type Message struct {
	Hello   *Hello   `json:"hello,omitempty"`
	Welcome *Welcome `json:"welcome,omitempty"`
	Refuse  *Refuse  `json:"refuse,omitempty"`
	Ping    *Ping    `json:"ping,omitempty"`
	Pong    *Pong    `json:"pong,omitempty"`
	Touched *Touched `json:"touched,omitempty"`
	Touch   *Touch   `json:"touch,omitempty"`   // runner: repeat the first I/Os
	Ready   *Stamp   `json:"ready,omitempty"`   // agent: prepared; waits at its barrier or starts now
	Go      *Stamp   `json:"go,omitempty"`      // runner: start at, on the agent's clock
	GoAck   *Stamp   `json:"goAck,omitempty"`   // agent: start time accepted
	Started *Stamp   `json:"started,omitempty"` // agent: the process exists
	Signal  *Signal  `json:"signal,omitempty"`
	Log     *Log     `json:"log,omitempty"`
	File    *File    `json:"file,omitempty"`   // with Body; runner: of a FileSpec
	Cut     *Cut     `json:"cut,omitempty"`    // agent: of a file something is discarded
	Enough  *Enough  `json:"enough,omitempty"` // runner: no more of a file
	Sample  *Sample  `json:"sample,omitempty"`
	Canary  *Canary  `json:"canary,omitempty"`
	Exit    *Exit    `json:"exit,omitempty"` // agent: nothing follows
	Bye     *Bye     `json:"bye,omitempty"`  // runner: Exit was received
	Meet    *Meet    `json:"meet,omitempty"` // agent: the process has come to a meeting
	Met     *Met     `json:"met,omitempty"`  // runner: it takes place

	// Body travels beside the header.
	Body []byte `json:"-"`
	// Received is when Conn.Read had the whole frame, on the reader's clock.
	Received int64 `json:"-"`
}

// Hello opens a connection. The first four fields are the same in all
// versions of the protocol, so that both sides can say what does not fit.
type Hello struct {
	Magic   string `json:"magic"`
	Proto   int    `json:"proto"`
	Version string `json:"version"`
	Token   string `json:"token"`
	// Began is when the agent was started, on its clock.
	Began int64 `json:"began"`
	// Attempts is how often the agent dialed until it was connected, at least
	// once; DialNanos how long that took in all.
	Attempts  int   `json:"attempts"`
	DialNanos int64 `json:"dialNanos"`
	// Machine is the ID of the boot of the machine; empty: unknown.
	Machine string `json:"machine,omitempty"`
}

// Welcome answers a Hello and says what is to be done beside the command.
type Welcome struct {
	Proto   int    `json:"proto"`
	Version string `json:"version"`
	// Barrier that the process waits at; empty: it starts at once.
	Barrier string `json:"barrier,omitempty"`
	// Meets: the process is started at once, stands at the barrier itself, and may
	// meet others on the way; see package rendezvous.
	Meets bool `json:"meets,omitempty"`
	// Outputs are glob patterns of files to stream, as the process sees them.
	Outputs []string `json:"outputs,omitempty"`
	// MaxOutput bounds what is sent of all files of the process, in bytes: package
	// quota; 0: nothing does.
	MaxOutput int64 `json:"maxOutput,omitempty"`
	// SampleNanos is the interval of samples; 0: none.
	SampleNanos int64 `json:"sampleNanos,omitempty"`
	// SampleMachine asks for the machine's counters in each sample.
	SampleMachine bool `json:"sampleMachine,omitempty"`
	// GraceNanos is how long after SIGTERM the process is killed when the
	// runner is lost.
	GraceNanos int64 `json:"graceNanos,omitempty"`
	// SilenceNanos is how long the runner may be silent until it is lost; 0:
	// as the agent has it.
	SilenceNanos int64       `json:"silenceNanos,omitempty"`
	Touch        []TouchSpec `json:"touch,omitempty"` // before Ready
	// TouchLater: only when a Touch asks for it.
	TouchLater bool `json:"touchLater,omitempty"`
	// Phase says when the process is there at all; nil: from the start, until it
	// ends by itself.
	Phase  *Phase      `json:"phase,omitempty"`
	Canary *CanarySpec `json:"canary,omitempty"`
	// Files follow as File messages, before Ready, each whole and in order.
	Files []FileSpec `json:"files,omitempty"`
}

// Phase is a part of the time that follows the start, which Go gives: the
// process is started FromNanos after it and ended UntilNanos after it (0: not at
// all) by SIGTERM, and what is left GraceNanos later by SIGKILL.
type Phase struct {
	FromNanos  int64 `json:"fromNanos,omitempty"`
	UntilNanos int64 `json:"untilNanos,omitempty"`
	GraceNanos int64 `json:"graceNanos,omitempty"`
}

// FileSpec is a file that the runner gives to the process.
type FileSpec struct {
	Path string `json:"path"` // absolute
	Size int64  `json:"size"`
	Mode uint32 `json:"mode"` // permission bits
}

// TouchSpec asks for the first I/O on one volume, which shows that it is of
// use. It leaves nothing behind.
type TouchSpec struct {
	Volume string `json:"volume"`           // what the record calls it
	Path   string `json:"path"`             // a directory on it, or its device
	Write  bool   `json:"write,omitempty"`  // a durable write of 4 KiB; never done to a device
	Read   bool   `json:"read,omitempty"`   // a read of what is there
	Device bool   `json:"device,omitempty"` // Path is a block device
}

// Touch asks for the I/Os of all TouchSpecs once more, beside the process.
type Touch struct{}

// Touched reports one I/O of a TouchSpec, also one that failed.
type Touched struct {
	Volume  string `json:"volume"`
	Write   bool   `json:"write,omitempty"`
	Began   int64  `json:"began"`
	At      int64  `json:"at"` // when it was done, or had failed
	Errno   int    `json:"errno,omitempty"`
	Message string `json:"message,omitempty"` // why it failed; empty: it did not
}

// CanarySpec asks for a canary on each of Volumes.
type CanarySpec struct {
	IntervalNanos int64          `json:"intervalNanos"`
	Size          int            `json:"size"` // bytes, a multiple of 4096
	Read          bool           `json:"read"`
	Write         bool           `json:"write"`
	Volumes       []CanaryVolume `json:"volumes"`
}

// CanaryVolume is one volume as the process sees it.
type CanaryVolume struct {
	Name string `json:"name"` // what the record calls it
	Path string `json:"path"` // a directory on it, or its device
}

// Refuse ends a connection before it began.
type Refuse struct {
	Reason string `json:"reason"`
}

// Ping begins a clock exchange. Sent is set by Conn.Write.
type Ping struct {
	Sent int64 `json:"sent"`
}

// Pong answers a Ping. Sent is set by Conn.Write.
type Pong struct {
	Ping     int64 `json:"ping"`     // Ping.Sent, returned
	Received int64 `json:"received"` // when the Ping was read
	Sent     int64 `json:"sent"`
}

// Stamp is an instant of the agent's clock.
type Stamp struct {
	At int64 `json:"at"`
	// Within is how much earlier it may have been: a command runs before the agent
	// that has started it runs again.
	Within int64 `json:"within,omitempty"`
}

// Signal is sent to the process; after GraceNanos (if > 0) everything that is
// left of it is killed.
type Signal struct {
	Number     int   `json:"number"`
	GraceNanos int64 `json:"graceNanos,omitempty"`
}

// Log is a line for people from the agent itself.
type Log struct {
	Line string `json:"line"`
}

// File delivers the bytes of a file at Offset, in order. The runner's have the
// path of their FileSpec as their name.
type File struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"`
}

// Cut reports that bytes of a file are discarded, behind those that were sent: once
// when that begins, and once, Final, before Exit.
type Cut struct {
	Name      string `json:"name"`
	Discarded int64  `json:"discarded"` // so far
	Final     bool   `json:"final,omitempty"`
}

// Enough has the agent discard what is still to come of a file.
type Enough struct {
	Name string `json:"name"`
}

// Names of the two files that the process writes by being run.
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
	// Machine has the counters of the whole machine, if they were asked for.
	Machine *op.MachineCounters `json:"machine,omitempty"`
}

// Canary delivers I/Os of one volume in order of their intended time.
type Canary struct {
	Volume  string     `json:"volume"`
	IOs     []CanaryIO `json:"ios"`
	Dropped int64      `json:"dropped,omitempty"` // intended but never issued, so far
}

// Never is the time of what did not happen.
const Never = math.MinInt64

// CanaryIO is one I/O; Started and Ended are Never where the agent ended first.
type CanaryIO struct {
	Intended int64 `json:"i"`
	Started  int64 `json:"s"`
	Ended    int64 `json:"e"`
	Write    bool  `json:"w,omitempty"`
	Errno    int   `json:"n,omitempty"`
}

// Exit is how the process ended. The agent sends it last.
type Exit struct {
	At       int64 `json:"at"`
	Started  bool  `json:"started"` // whether the process ever existed
	ExitCode int   `json:"exitCode"`
	Signal   int   `json:"signal,omitempty"`
	// Ours says that the signal, or the end, was asked for by the runner.
	Ours bool `json:"ours,omitempty"`
	OOM  bool `json:"oom,omitempty"`
	// PhaseOver says that the process was ended, or never started, because its
	// phase was over: however it ended, that is no failure.
	PhaseOver bool `json:"phaseOver,omitempty"`
	// Code and Message say what kept the process from being run.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// Codes of an Exit without a process.
const (
	CodeNoProgram = "ProgramMissing" // the command was not found
	CodeJail      = "JailFailed"     // its surroundings could not be made
	CodeExec      = "ExecFailed"     // it was found but could not be run
)

// Meet says that the process has come to a meeting, by a number of its own.
type Meet struct {
	ID int64 `json:"id"`
	Meeting
}

// Meeting is one of a group of so many members, who count from 0. It takes place
// when each of them has come to this step, or a later one, or is gone: it has
// ended, or is lost. A member that comes late finds it over and goes on.
type Meeting struct {
	Group   string `json:"group"`
	Step    int    `json:"step"`
	Index   int    `json:"index"`
	Members int    `json:"members"`
	// Failed: this member has failed; all are told.
	Failed bool `json:"failed,omitempty"`
}

// Met answers a Meet.
type Met struct {
	ID int64 `json:"id"`
	// At is when all go on, on the agent's clock.
	At int64 `json:"at"`
	// Present are the members that are not gone, and Failed whether one has
	// failed or gone without success.
	Present []int `json:"present,omitempty"`
	Failed  bool  `json:"failed,omitempty"`
}

// Bye ends a connection.
type Bye struct{}

// ErrTooLong is returned for a frame beyond the bounds.
var ErrTooLong = errors.New("frame is longer than the protocol allows")

// Conn sends and receives messages on a stream. Read is for one goroutine,
// Write for any number.
type Conn struct {
	rw  io.ReadWriteCloser
	now func() int64
	in  []byte // header buffer of Read

	mu  sync.Mutex
	out []byte
}

// NewConn uses rw, which it closes in Close; now is the clock of this side.
func NewConn(rw io.ReadWriteCloser, now func() int64) *Conn {
	return &Conn{rw: rw, now: now}
}

// Close closes the stream; Read and Write that are under way return.
func (c *Conn) Close() error { return c.rw.Close() }

// Write sends one message whole. It blocks while the peer does not read. The
// Sent of a Ping or Pong is stamped here, after any wait for other writers.
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

// Read receives one message. Its Body is the caller's to keep. At the end of
// the stream the error is io.EOF.
func (c *Conn) Read() (Message, error) {
	m, err := Decode(c.rw, &c.in)
	m.Received = c.now()
	return m, err
}

// ReadHello receives a first message, of which no more than MaxHello is read:
// whoever sends it has shown no token yet.
func (c *Conn) ReadHello() (Message, error) {
	m, err := decode(c.rw, &c.in, MaxHello, 0)
	m.Received = c.now()
	return m, err
}

// Append encodes m behind b.
func Append(b []byte, m Message) ([]byte, error) {
	header, err := json.Marshal(m)
	if err != nil {
		return b, fmt.Errorf("wire: %w", err)
	}
	if len(header) > MaxHeader || len(m.Body) > MaxBody {
		return b, fmt.Errorf("wire: header %d, body %d bytes: %w", len(header), len(m.Body), ErrTooLong)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(header)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(m.Body)))
	b = append(b, header...)
	return append(b, m.Body...), nil
}

// Decode reads one message from r; buf is scratch space that is kept between
// calls. A stream that ends between frames gives io.EOF, inside one
// io.ErrUnexpectedEOF.
func Decode(r io.Reader, buf *[]byte) (Message, error) { return decode(r, buf, MaxHeader, MaxBody) }

func decode(r io.Reader, buf *[]byte, maxHeader, maxBody uint32) (Message, error) {
	var m Message
	var lengths [8]byte
	if _, err := io.ReadFull(r, lengths[:]); err != nil {
		return m, err
	}
	head, body := binary.BigEndian.Uint32(lengths[:4]), binary.BigEndian.Uint32(lengths[4:])
	if head > maxHeader || body > maxBody {
		return m, fmt.Errorf("wire: header %d, body %d bytes: %w", head, body, ErrTooLong)
	}
	if cap(*buf) < int(head) {
		*buf = make([]byte, head)
	}
	header := (*buf)[:head]
	if _, err := io.ReadFull(r, header); err != nil {
		return m, inside(err)
	}
	if err := json.Unmarshal(header, &m); err != nil {
		return Message{}, fmt.Errorf("wire: header: %w", err)
	}
	if body > 0 {
		m.Body = make([]byte, body)
		if _, err := io.ReadFull(r, m.Body); err != nil {
			return Message{}, inside(err)
		}
	}
	return m, nil
}

// inside turns an end of the stream into one in the middle of a frame.
func inside(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
