package csiproxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/agent/transport"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Item is something that a driver has, by its own list.
type Item struct {
	ID string `json:"id"`
	// Source is the volume that a snapshot is of; Group the group that it is in.
	Source string `json:"source,omitempty"`
	Group  string `json:"group,omitempty"`
}

// Inventory is what a driver says that it has. A list that it does not offer is
// nil.
type Inventory struct {
	Driver             string
	Volumes, Snapshots map[string]Item // by id
	// Cut says that there was more than is asked for.
	Cut bool
}

// ErrNoList says that the proxy, or the driver behind it, has no list to give.
var ErrNoList = errors.New("the driver behind the proxy cannot list what it has")

// listing is a part of an inventory as it is sent; the last has More false.
type listing struct {
	Volumes   []Item `json:"volumes,omitempty"`
	Snapshots []Item `json:"snapshots,omitempty"`
	// CanVolumes, CanSnapshots say, in the first part, which lists there are.
	CanVolumes   bool   `json:"canVolumes,omitempty"`
	CanSnapshots bool   `json:"canSnapshots,omitempty"`
	More         bool   `json:"more,omitempty"`
	Cut          bool   `json:"cut,omitempty"`
	Error        string `json:"error,omitempty"`
}

const (
	listPage   = 500
	maxItems   = 100_000 // of each list: as far as a driver is asked
	listWithin = time.Minute
)

// List asks the proxy at address what the driver behind it has: the proxy calls
// the driver's own lists, which changes nothing. ErrNoList where there are none.
func List(ctx context.Context, address, token string) (*Inventory, error) {
	if err := transport.CheckToken(token); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	c := &Client{address: address, token: token, clock: op.NewClock()}
	s, err := c.connect(ctx, func(s *session) error {
		if !s.welcome.Lists {
			return ErrNoList
		}
		s.SetSilence(listWithin) // a driver may take its time
		return s.mail.Write(&letter{List: &list{}})
	})
	if err != nil {
		return nil, fmt.Errorf("CSI proxy at %s: %w", address, err)
	}
	defer func() { _ = s.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	found := &Inventory{Driver: s.welcome.Driver}
	for {
		var l letter
		err := s.mail.Read(&l)
		switch {
		case err != nil:
			return nil, errors.Join(err, ctx.Err())
		case l.Listing == nil:
			continue
		case l.Listing.Error != "":
			return nil, fmt.Errorf("CSI proxy at %s: the driver's list: %s", address, l.Listing.Error)
		}
		found.add(l.Listing)
		if !l.Listing.More {
			break
		}
	}
	if found.Volumes == nil && found.Snapshots == nil {
		return nil, fmt.Errorf("CSI proxy at %s: %w", address, ErrNoList)
	}
	return found, nil
}

func (v *Inventory) add(l *listing) {
	if l.CanVolumes {
		v.Volumes = map[string]Item{}
	}
	if l.CanSnapshots {
		v.Snapshots = map[string]Item{}
	}
	for _, i := range l.Volumes {
		v.Volumes[i.ID] = i
	}
	for _, i := range l.Snapshots {
		v.Snapshots[i.ID] = i
	}
	v.Cut = v.Cut || l.Cut
}

// inventory asks the driver what it has and sends it in parts. A failure of the
// driver's is the last of them; the error is of sending.
func (p *Proxy) inventory(ctx context.Context, send func(listing) error) error {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	cut, err := p.walk(ctx, func(part listing) error {
		part.More = true
		return send(part)
	})
	last := listing{Cut: cut}
	if err != nil {
		last.Error = err.Error()
	}
	return send(last)
}

// walk hands on what the driver lists, page by page; cut says that it has more.
func (p *Proxy) walk(ctx context.Context, emit func(listing) error) (cut bool, err error) {
	conn, err := clientOf(p.front.dial)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	driver := csi.NewControllerClient(conn)
	first, err := lists(ctx, driver)
	if err != nil {
		return false, err
	}
	if err := emit(first); err != nil {
		return false, err
	}
	for _, one := range []struct {
		offered bool
		page    func(ctx context.Context, driver csi.ControllerClient, token string) (l listing, next string, err error)
	}{{first.CanVolumes, volumesPage}, {first.CanSnapshots, snapshotsPage}} {
		for token, seen := "", 0; one.offered; {
			l, next, err := one.page(ctx, driver, token)
			if err == nil {
				err = emit(l)
			}
			if err != nil {
				return false, err
			}
			seen += len(l.Volumes) + len(l.Snapshots)
			if cut = cut || next != "" && seen >= maxItems; cut || next == "" {
				break
			}
			token = next
		}
	}
	return cut, nil
}

// lists says which lists a driver has. One without a controller has none.
func lists(ctx context.Context, driver csi.ControllerClient) (listing, error) {
	answer, err := driver.ControllerGetCapabilities(ctx, &csi.ControllerGetCapabilitiesRequest{})
	if status.Code(err) == codes.Unimplemented {
		return listing{}, nil
	}
	if err != nil {
		return listing{}, err
	}
	var l listing
	for _, c := range answer.GetCapabilities() {
		switch c.GetRpc().GetType() {
		case csi.ControllerServiceCapability_RPC_LIST_VOLUMES:
			l.CanVolumes = true
		case csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS:
			l.CanSnapshots = true
		}
	}
	return l, nil
}

func volumesPage(ctx context.Context, driver csi.ControllerClient, token string) (l listing, next string, err error) {
	answer, err := driver.ListVolumes(ctx, &csi.ListVolumesRequest{MaxEntries: listPage, StartingToken: token})
	for _, e := range answer.GetEntries() {
		l.Volumes = append(l.Volumes, Item{ID: e.GetVolume().GetVolumeId()})
	}
	return l, answer.GetNextToken(), err
}

func snapshotsPage(ctx context.Context, driver csi.ControllerClient, token string) (l listing, next string, err error) {
	answer, err := driver.ListSnapshots(ctx, &csi.ListSnapshotsRequest{MaxEntries: listPage, StartingToken: token})
	for _, e := range answer.GetEntries() {
		s := e.GetSnapshot()
		l.Snapshots = append(l.Snapshots, Item{ID: s.GetSnapshotId(), Source: s.GetSourceVolumeId(), Group: s.GetGroupSnapshotId()})
	}
	return l, answer.GetNextToken(), err
}
