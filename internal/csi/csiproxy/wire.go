package csiproxy

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/agent/message"
)

// Proto is the version of what a proxy and a runner say to each other. Two
// sides that differ part with an error that names both.
const Proto = 1

const magic = "cnsbench-csi-proxy"

const maxFrame = 4 << 20

// letter is one of package message: exactly one pointer is set. Times are of the side that
// took them.
//
//	runner  hello                                   proof of the token
//	proxy   welcome or refuse                       proof of the token
//	runner  ping … proxy pong, from now on          the clocks are joined
//	runner  from                                    where to begin
//	proxy   page, page, …
//
// or, in place of all that follows the proofs:
//
//	runner  list                                    what the driver has
//	proxy   listing, listing, …
type letter struct {
	message.Time
	Hello   *hello   `json:"hello,omitempty"`
	Welcome *welcome `json:"welcome,omitempty"`
	Refuse  *refuse  `json:"refuse,omitempty"`
	From    *from    `json:"from,omitempty"`
	Page    *records `json:"page,omitempty"`
	List    *list    `json:"list,omitempty"`
	Listing *listing `json:"listing,omitempty"`
}

// hello opens a session. The first two fields are the same in all versions.
type hello struct {
	Magic string `json:"magic"`
	Proto int    `json:"proto"`
	Proof []byte `json:"proof"`
}

type welcome struct {
	Proto    int    `json:"proto"`
	Proof    []byte `json:"proof"`
	Instance string `json:"instance"` // positions and the clock are this process's
	Driver   string `json:"driver,omitempty"`
	Node     string `json:"node,omitempty"`
	Lists    bool   `json:"lists,omitempty"` // it knows the letter list
}

// list asks what the driver has.
type list struct{}

type refuse struct {
	Reason string `json:"reason"`
	Token  bool   `json:"token,omitempty"` // the reason is the token
}

// from asks for records: of an earlier position, or from now on.
type from struct {
	Now bool  `json:"now,omitempty"`
	At  int64 `json:"at"`
}

type records struct {
	Records []Record `json:"records"`
	Next    int64    `json:"next"`   // the position behind them
	Lost    int64    `json:"lost"`   // records before them that are kept no longer
	Unseen  int64    `json:"unseen"` // calls that could not be read, in all
}

// Who proves that it knows the token, by the version that both speak.
var (
	asRunner = fmt.Sprintf("%s %d runner", magic, Proto)
	asProxy  = fmt.Sprintf("%s %d proxy", magic, Proto)
)
