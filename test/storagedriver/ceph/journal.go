package ceph

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ceph/go-ceph/rados"
)

// record is what the driver keeps of a volume or snapshot.
type record struct {
	Name string `json:"name"`
	UUID string `json:"uuid"`
	Size int64  `json:"size"`
	// FS and Group are those of a subvolume; DataPool is where data goes.
	FS       string `json:"fs,omitempty"`
	DataPool string `json:"dataPool,omitempty"`
	// Source is the id of the volume or snapshot that it is made from.
	Source  string    `json:"source,omitempty"`
	Created time.Time `json:"created"`
}

// journal maps names to records and UUIDs to names, in the omap of an object of a pool, as ceph-csi does: requests are
// idempotent also for a driver that has been restarted.
type journal struct {
	io     *rados.IOContext
	object string
}

const (
	volumesObject   = "csi.volumes.default"
	snapshotsObject = "csi.snaps.default"
	namePrefix      = "csi.name."
	uuidPrefix      = "csi.uuid."
)

// find returns the record of a name, or nil.
func (j journal) find(name string) (*record, error) { return j.get(namePrefix + name) }

// lookUp returns the record of a UUID, or nil.
func (j journal) lookUp(uuid string) (*record, error) { return j.get(uuidPrefix + uuid) }

func (j journal) get(key string) (*record, error) {
	op := rados.CreateReadOp()
	defer op.Release()
	step := op.GetOmapValuesByKeys([]string{key})
	if err := op.Operate(j.io, j.object, rados.OperationNoFlag); err != nil {
		var failed rados.OperationError
		if errors.As(err, &failed) && errors.Is(failed.OpError, rados.ErrNotFound) { // the first volume makes it
			return nil, nil
		}
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	pair, err := step.Next()
	if err != nil || pair == nil {
		return nil, err
	}
	r := &record{}
	if err := json.Unmarshal(pair.Value, r); err != nil {
		return nil, fmt.Errorf("journal: %s: %w", key, err)
	}
	return r, nil
}

// put writes a record under its name and UUID at once.
func (j journal) put(r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return j.io.SetOmap(j.object, map[string][]byte{namePrefix + r.Name: text, uuidPrefix + r.UUID: text})
}

func (j journal) remove(r record) error {
	return j.io.RmOmapKeys(j.object, []string{namePrefix + r.Name, uuidPrefix + r.UUID})
}
