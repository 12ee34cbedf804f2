package csiproxy

import (
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/message"
)

// Proto is the version of the protocol between proxy and runner. Peers with different versions disconnect
// with an error that names both.
const Proto = 2

// protocol is that of one side, with its clock; the other side is lost when it sends or takes nothing for silence.
func protocol(now func() int64, silence time.Duration) message.Protocol {
	return message.Protocol{Magic: "cnsbench-csi-proxy", Proto: Proto, Dials: "runner", Serves: "proxy",
		MaxSize: 4 << 20, Silence: silence, Now: now}
}

// wireMessage is a message of package message, after the handshake: exactly one pointer is set. Times are of the side
// that took them.
//
//	runner  ping … proxy pong, from now on          clock synchronisation
//	runner  from                                    position of the first record
//	proxy   page, page, …
//
// or, in place of everything:
//
//	runner  list                                    objects of the driver
//	proxy   listing, listing, …
type wireMessage struct {
	message.Time
	Start   *startAt     `json:"from,omitempty"`
	Page    *recordPage  `json:"page,omitempty"`
	List    *listRequest `json:"list,omitempty"`
	Listing *listing     `json:"listing,omitempty"`
}

// about is what a proxy says about itself.
type about struct {
	Instance string `json:"instance"` // positions and the clock belong to this process
	Driver   string `json:"driver,omitempty"`
	Node     string `json:"node,omitempty"`
	Lists    bool   `json:"lists,omitempty"` // supports listRequest
}

// listRequest asks for the driver's objects.
type listRequest struct{}

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
