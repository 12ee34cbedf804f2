package ceph

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// objectID is a volume's or snapshot's id in the form of ceph-csi: version, length of the cluster's id, the cluster's
// id, the id of the pool (RBD) or file system (CephFS), a UUID.
type objectID struct {
	cluster  string
	location int64
	uuid     string
}

const (
	idVersion  = "0001"
	uuidLength = 36
)

var errInvalidID = errors.New("not an id of this driver")

func (o objectID) String() string {
	return fmt.Sprintf("%s-%04x-%s-%016x-%s", idVersion, len(o.cluster), o.cluster, o.location, o.uuid)
}

// parseID reverses String.
func parseID(id string) (objectID, error) {
	rest, ok := strings.CutPrefix(id, idVersion+"-")
	if !ok || len(rest) < 5 {
		return objectID{}, errInvalidID
	}
	n, err := strconv.ParseUint(rest[:4], 16, 16)
	if err != nil || len(rest) != 5+int(n)+1+16+1+uuidLength {
		return objectID{}, errInvalidID
	}
	o := objectID{cluster: rest[5 : 5+n], uuid: rest[len(rest)-uuidLength:]}
	o.location, err = strconv.ParseInt(rest[6+n:22+n], 16, 64)
	if err != nil || o.String() != id {
		return objectID{}, errInvalidID
	}
	return o, nil
}

// newUUID returns a random UUID (version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

const (
	mib = 1 << 20
	gib = 1 << 30
)

// roundSize rounds up to MiB below 1 GiB, and to GiB from there, as ceph-csi does.
func roundSize(bytes int64) int64 {
	unit := int64(mib)
	if bytes >= gib {
		unit = gib
	}
	return max((bytes+unit-1)/unit, 1) * unit
}
