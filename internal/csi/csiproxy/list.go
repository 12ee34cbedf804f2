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

// Inventory holds the objects that a driver lists. A list that it does not support is nil.
type Inventory struct {
	Driver             string
	Volumes, Snapshots map[string]Item // by id
	// Cut reports that the driver has more objects than were requested.
	Cut bool
}

// ErrNoList is returned when the proxy, or its driver, cannot list objects.
var ErrNoList = errors.New("the driver behind the proxy cannot list its volumes and snapshots")

const (
	listPage   = 500
	maxItems   = 100_000 // of each list
	listWithin = time.Minute
)

// List returns the objects of the driver behind the proxy at address, by the driver's read-only list calls.
// ErrNoList if it supports none.
func List(ctx context.Context, address, token string) (*Inventory, error) {
	if err := transport.CheckToken(token); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	c := &Client{address: address, token: token, clock: op.NewClock()}
	s, err := c.connect(ctx, func(s *session) error {
		if !s.about.Lists {
			return ErrNoList
		}
		s.Link.SetSilence(listWithin) // the driver may be slow
		return s.Write(&wireMessage{List: &listRequest{}})
	})
	if err != nil {
		return nil, fmt.Errorf("CSI proxy at %s: %w", address, err)
	}
	defer func() { _ = s.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	found := &Inventory{Driver: s.about.Driver}
	for {
		var l wireMessage
		err := s.Read(&l)
		switch {
		case err != nil:
			return nil, errors.Join(err, ctx.Err())
		case l.Listing == nil:
			continue
		case l.Listing.Error != "":
			return nil, fmt.Errorf("CSI proxy at %s: list of the driver: %s", address, l.Listing.Error)
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

// sendInventory lists the driver's objects and sends them in parts. A failure of the driver is reported in
// the last part; the returned error is from send.
func (p *Proxy) sendInventory(ctx context.Context, send func(listing) error) error {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	cut, err := p.listAll(ctx, func(part listing) error {
		part.More = true
		return send(part)
	})
	last := listing{Cut: cut}
	if err != nil {
		last.Error = err.Error()
	}
	return send(last)
}

// listAll passes the driver's lists to emit, page by page; cut reports that there is more.
func (p *Proxy) listAll(ctx context.Context, emit func(listing) error) (cut bool, err error) {
	conn, err := grpcClient(p.endpoint.dial)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	driver := csi.NewControllerClient(conn)
	first, err := listCapabilities(ctx, driver)
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

// listCapabilities returns the lists that a driver supports: none without a controller service.
func listCapabilities(ctx context.Context, driver csi.ControllerClient) (listing, error) {
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
		l.Snapshots = append(l.Snapshots, Item{ID: s.GetSnapshotId(), Source: s.GetSourceVolumeId(),
			Group: s.GetGroupSnapshotId()})
	}
	return l, answer.GetNextToken(), err
}
