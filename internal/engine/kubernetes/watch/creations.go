package watch

import (
	"slices"
	"strconv"

	"github.com/cnsbench/cnsbench/internal/op"
)

// keepCreations is the number of creations of a kind kept for since.
const keepCreations = 1024

// creations has those creations of the run that bound the lag of a change by themselves. Versions of a kind are in the
// order of its changes (KEP-5504), so a change is later than each creation with a smaller version, and that is later
// than its request. Of other writes this is not known: one that changes nothing is answered with a version from before
// its request.
type creations struct {
	list []creation // version and sent grow
}

type creation struct {
	version uint64
	sent    op.Time
}

// add adds a creation that was answered. Versions that are not numbers are left out.
func (c *creations) add(version string, sent op.Time) {
	v, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return
	}
	i, _ := slices.BinarySearchFunc(c.list, v, creation.compare)
	if i > 0 && c.list[i-1].sent >= sent {
		return // the one before says more
	}
	end := i
	for end < len(c.list) && c.list[end].sent <= sent {
		end++
	}
	c.list = slices.Replace(c.list, i, end, creation{v, sent})
	if len(c.list) > keepCreations {
		c.list = slices.Delete(c.list, 0, keepCreations/2)
	}
}

// since returns an instant before the change of a version: the last known one; Never if there is none.
func (c *creations) since(version string) op.Time {
	v, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return op.Never
	}
	i, found := slices.BinarySearchFunc(c.list, v, creation.compare)
	if found {
		i++
	}
	if i == 0 {
		return op.Never
	}
	return c.list[i-1].sent
}

func (c creation) compare(version uint64) int {
	switch {
	case c.version < version:
		return -1
	case c.version > version:
		return 1
	}
	return 0
}
