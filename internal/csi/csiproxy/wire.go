package csiproxy

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/agent/message"
)

// Proto is the version of the protocol between proxy and runner. Peers with different versions disconnect
// with an error that names both.
const Proto = 1

const magic = "cnsbench-csi-proxy"

const maxFrame = 4 << 20

// wireMessage is a message of package message: exactly one pointer is set. Times are of the side that took
// them.
//
//	runner  hello                                   proof of the token
//	proxy   welcome or refuse                       proof of the token
//	runner  ping … proxy pong, from now on          clock synchronisation
//	runner  from                                    position of the first record
//	proxy   page, page, …
//
// or, in place of everything after the proofs:
//
//	runner  list                                    objects of the driver
//	proxy   listing, listing, …
type wireMessage struct {
	message.Time
	Hello   *hello       `json:"hello,omitempty"`
	Welcome *welcome     `json:"welcome,omitempty"`
	Refuse  *refuse      `json:"refuse,omitempty"`
	Start   *startAt     `json:"from,omitempty"`
	Page    *recordPage  `json:"page,omitempty"`
	List    *listRequest `json:"list,omitempty"`
	Listing *listing     `json:"listing,omitempty"`
}

// hello opens a session. Its first two fields are the same in all versions.
type hello struct {
	Magic string `json:"magic"`
	Proto int    `json:"proto"`
	Proof []byte `json:"proof"`
}

type welcome struct {
	Proto    int    `json:"proto"`
	Proof    []byte `json:"proof"`
	Instance string `json:"instance"` // positions and the clock belong to this process
	Driver   string `json:"driver,omitempty"`
	Node     string `json:"node,omitempty"`
	Lists    bool   `json:"lists,omitempty"` // supports listRequest
}

// listRequest asks for the driver's objects.
type listRequest struct{}

type refuse struct {
	Reason string `json:"reason"`
	Token  bool   `json:"token,omitempty"` // the token is wrong
}

// startAt requests records from an earlier position, or from now on.
type startAt struct {
	Now bool  `json:"now,omitempty"`
	At  int64 `json:"at"`
}

type recordPage struct {
	Records []Record `json:"records"`
	Next    int64    `json:"next"`   // position after them
	Lost    int64    `json:"lost"`   // discarded records before them
	Unseen  int64    `json:"unseen"` // total of calls that could not be parsed
}

// Roles in the token proofs, by protocol version.
var (
	asRunner = fmt.Sprintf("%s %d runner", magic, Proto)
	asProxy  = fmt.Sprintf("%s %d proxy", magic, Proto)
)

// listing is a part of an inventory; the last part has More false.
type listing struct {
	Volumes   []Item `json:"volumes,omitempty"`
	Snapshots []Item `json:"snapshots,omitempty"`
	// CanVolumes and CanSnapshots, in the first part, say which lists the driver supports.
	CanVolumes   bool   `json:"canVolumes,omitempty"`
	CanSnapshots bool   `json:"canSnapshots,omitempty"`
	More         bool   `json:"more,omitempty"`
	Cut          bool   `json:"cut,omitempty"`
	Error        string `json:"error,omitempty"`
}

// Item is an object in a driver's list.
type Item struct {
	ID string `json:"id"`
	// Source is the source volume of a snapshot; Group its group.
	Source string `json:"source,omitempty"`
	Group  string `json:"group,omitempty"`
}
