// Package coordinator carries one object workload out with several processes. A controller deals stages to
// hosts that serve it (Dial, Serve); the instances of a workload of a Benchmark are shards that agree on each
// stage at the run's rendezvous (RunShard), and write files that ReadShard reads.
package coordinator

import (
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/message"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Proto is the version of the protocol between controller and host.
const Proto = 5

const maxFrame = 32 << 20

// frame is a message of the protocol, after the handshake: exactly one pointer is set. Times are on the clock of the
// side that took them, unless stated otherwise.
//
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
	Setup  *setup  `json:"setup,omitempty"`
	Order  *order  `json:"order,omitempty"`
	Ready  *ready  `json:"ready,omitempty"`
	Start  *start  `json:"start,omitempty"`
	Began  *began  `json:"began,omitempty"`
	Second *second `json:"second,omitempty"`
	Stop   *stop   `json:"stop,omitempty"`
	Ended  *ended  `json:"ended,omitempty"`
}

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

// protocol is that between controllers and hosts; both sides run the same version of the program. A peer that sends
// or takes nothing for silence is lost.
func protocol(clock op.Clock, version string, silence time.Duration) message.Protocol {
	return message.Protocol{Magic: "cnsbench-object-worker", Proto: Proto, Version: version, Dials: "controller",
		Serves: "worker", MaxSize: maxFrame, Silence: silence, Now: func() int64 { return int64(clock.Now()) }}
}
