package csidriver

import (
	"encoding/json"
	"os"
	"sync"
	"time"
)

// Event kinds of the truth log.
const (
	eventStart  = "start"
	eventRPC    = "rpc"
	eventFreeze = "freeze"
	eventAttach = "attach"
	eventMkfs   = "mkfs"
)

// Record is one line of the truth log. Fields that do not apply are absent. Times are of the driver's wall
// clock, durations of its monotonic clock.
type Record struct {
	// Event is "start", "rpc", "freeze", "attach" or "mkfs".
	Event string `json:"event"`
	RPC   string `json:"rpc,omitempty"`
	// Node is the node whose socket received the call.
	Node string `json:"node,omitempty"`

	// StartUnixNs is when the call arrived or, for a freeze, when FIFREEZE was called.
	StartUnixNs int64 `json:"start_unix_ns"`
	// FrozenUnixNs is when FIFREEZE returned.
	FrozenUnixNs int64 `json:"frozen_unix_ns,omitempty"`
	// EndUnixNs is when the response was passed to the transport or, for a freeze, when FITHAW returned.
	EndUnixNs  int64 `json:"end_unix_ns,omitempty"`
	DurationNs int64 `json:"duration_ns"`
	// HeldNs is the time from the return of FIFREEZE to that of FITHAW: the lower bound of how long a writer
	// was blocked; DurationNs is the upper bound. FIFREEZE begins with an RCU grace period of 5 to 25 ms, in
	// which writers still proceed, and then writes back dirty data, during which they do not.
	HeldNs int64 `json:"held_ns,omitempty"`
	// InjectedDelayNs is the injected sleep: delay, stall and window together.
	InjectedDelayNs int64 `json:"injected_delay_ns,omitempty"`
	// Injected lists the injected effects, joined by "+": window, delay, stall, hang, error.
	Injected string `json:"injected,omitempty"`
	// QueuedNs is how long the call waited for another call on the same object.
	QueuedNs int64 `json:"queued_ns,omitempty"`

	Name     string `json:"name,omitempty"`
	Volume   string `json:"volume,omitempty"`
	Snapshot string `json:"snapshot,omitempty"`
	Group    string `json:"group,omitempty"`
	// Code is the gRPC code of the answer, such as "OK".
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`

	// Device belongs to attach and mkfs events: the loop device. DirectIO is whether it bypasses the page cache of
	// its image.
	Device   string `json:"device,omitempty"`
	DirectIO *bool  `json:"direct_io,omitempty"`

	// Driver and the following fields belong to the start event.
	Driver  string `json:"driver,omitempty"`
	Version string `json:"version,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Seed    uint64 `json:"seed,omitempty"`
	Inject  string `json:"inject,omitempty"`
}

// truthLog appends records, each with one write, so that a killed driver loses none that it has answered. It
// is safe for concurrent use; a nil log discards records.
type truthLog struct {
	mu   sync.Mutex
	file *os.File
	err  error // the first failure; reported by close
}

func openTruthLog(path string) (*truthLog, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &truthLog{file: f}, nil
}

func (l *truthLog) write(r Record) {
	if l == nil {
		return
	}
	line, err := json.Marshal(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	if l.err == nil {
		l.err = err
	}
}

func (l *truthLog) close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.file.Close(); l.err == nil {
		l.err = err
	}
	return l.err
}

// wall converts a duration since start to wall-clock time, from one pair of readings, so that a step of the
// wall clock cannot place a call's end before its start.
func wall(start time.Time, since time.Duration) int64 { return start.UnixNano() + int64(since) }
