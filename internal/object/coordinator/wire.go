// Package coordinator carries one object workload out with several processes. A controller deals stages to
// hosts that serve it (Dial, Serve); the instances of a workload of a Benchmark are shards that agree on each
// stage at the run's rendezvous (RunShard), and write files that ReadShard reads.
package coordinator

import (
	"encoding/json"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/message"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Proto is the version of the protocol between controller and host.
const Proto = 3

const magic = "cnsbench-object-worker"

const maxFrame = 32 << 20

// frame is a message of the protocol: exactly one pointer is set. Times are on the clock of the side that took
// them, unless stated otherwise.
//
//	controller  hello                         proof of the token
//	host        welcome or refuse             proof of the token
//	controller  ping … host pong              from now on; the clocks are joined
//	controller  setup                         of the run
//
// then, for each stage:
//
//	controller  order                         the host's share
//	host        ready
//	controller  start                         when, on the host's clock
//	host        began, second, second, …
//	controller  stop                          at any time
//	host        ended                         also in place of ready
type frame struct {
	message.Time
	Hello   *hello   `json:"hello,omitempty"`
	Welcome *welcome `json:"welcome,omitempty"`
	Refuse  *refuse  `json:"refuse,omitempty"`
	Setup   *setup   `json:"setup,omitempty"`
	Order   *order   `json:"order,omitempty"`
	Ready   *ready   `json:"ready,omitempty"`
	Start   *start   `json:"start,omitempty"`
	Began   *began   `json:"began,omitempty"`
	Second  *second  `json:"second,omitempty"`
	Stop    *stop    `json:"stop,omitempty"`
	Ended   *ended   `json:"ended,omitempty"`
}

// hello opens a session. Its fields but the proof are the same in all versions.
type hello struct {
	Magic   string `json:"magic"`
	Proto   int    `json:"proto"`
	Version string `json:"version"` // of the program
	Proof   []byte `json:"proof"`
}

type welcome struct {
	Proof []byte `json:"proof"`
	// About describes the machine.
	About json.RawMessage `json:"about,omitempty"`
}

// refuse explains why there is no session. It is the same in all versions.
type refuse struct {
	Reason string `json:"reason"`
	Kind   string `json:"kind"` // token, version, busy
}

// The kinds of refusals.
const (
	kindToken   = "token"
	kindVersion = "version"
	kindBusy    = "busy"
)

// setup is what holds for a whole run.
type setup struct {
	Run   string        `json:"run"`
	Seed  uint64        `json:"seed"`
	Grace time.Duration `json:"graceNs"`
	// OwnCredentials has the host look for them itself.
	OwnCredentials bool `json:"ownCredentials"`
}

// order is a host's share of a stage, with the secrets of each work, which a model.Stage does not encode.
type order struct {
	Stage   model.Stage     `json:"stage"`
	Secrets []model.Secrets `json:"secrets"`
	// NullSize has the host go to a null server of its own, with objects of so many
	// bytes, instead of to the stores; 0: to the stores.
	NullSize int64 `json:"nullSize,omitempty"`
}

type ready struct{}

// start is when, on the host's clock, the works begin on all hosts.
type start struct {
	At op.Time `json:"at"`
}

// stop ends the works of the stage; operations in flight have the grace, or end at once.
type stop struct {
	AtOnce bool `json:"atOnce"`
}

// The two sides of the token's proof, the same in all versions: a version mismatch must not look like a wrong token.
const (
	asController = magic + " controller"
	asHost       = magic + " host"
)

// newConn is for one side's link, whose clock that is; a peer that takes nothing
// for so long is lost.
func newConn(l message.Stream, clock op.Clock, silence time.Duration) *message.Conn {
	return message.New(l, func() int64 { return int64(clock.Now()) }, maxFrame, silence)
}
