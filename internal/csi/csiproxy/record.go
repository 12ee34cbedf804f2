package csiproxy

import "github.com/cnsbench/cnsbench/internal/op"

// Subject identifies the objects of an RPC, as far as its messages name them. Fields that CSI marks as secret
// are never read.
type Subject struct {
	Driver   string `json:"driver,omitempty"`   // name of the driver, once it is known
	Node     string `json:"node,omitempty"`     // node_id of the request; else the proxy's own node
	Name     string `json:"name,omitempty"`     // of what is to be created: pvc-…, snapshot-…
	Volume   string `json:"volume,omitempty"`   // volume_id, of the request or of the answer
	Snapshot string `json:"snapshot,omitempty"` // snapshot_id; several are joined by commas
	Group    string `json:"group,omitempty"`    // group_snapshot_id
	Source   string `json:"source,omitempty"`   // ids of the volumes or snapshot it is made from
	Path     string `json:"path,omitempty"`     // target path, else volume path, else staging path
}

// Record is one RPC on the proxy's clock. It is delivered when the RPC begins and again when it ends.
type Record struct {
	Seq int64  `json:"seq"` // from 1, in the order in which the RPCs were seen
	RPC string `json:"rpc"` // "NodeStageVolume"; "/service/Method" where CSI does not know it
	Subject
	Start   int64  `json:"start"`         // ns; its headers were there
	End     int64  `json:"end,omitempty"` // ns; the status was there. 0: in flight
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// CodeUnseen is the code of a call whose end could not be parsed.
const CodeUnseen = "Unseen"

// Call is one RPC on the run's clock.
type Call struct {
	Seq int64
	RPC string
	Subject
	Start op.Time
	End   op.Time // op.Never: in flight
	// Err is the ± error of Start and End in ns. The duration End − Start has only the error of the
	// proxy's clock rate.
	Err     int64
	Code    string // "" in flight; "OK", "DeadlineExceeded", …
	Message string
}

// maxText bounds a text field of a record in bytes.
const maxText = 1 << 10

func clip(s string) string { return s[:min(len(s), maxText)] }

// size is the approximate memory use of a record in bytes.
func (r *Record) size() int {
	return 320 + len(r.Driver) + len(r.Node) + len(r.Name) + len(r.Volume) + len(r.Snapshot) +
		len(r.Group) + len(r.Source) + len(r.Path) + len(r.Message)
}
