// Package gluster is a CSI driver for GlusterFS, for tests only: a volume is a directory of a GlusterFS volume, staged
// by a client of its own. There are no snapshots and clones, and a volume's size is not enforced.
package gluster

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
	"github.com/cnsbench/cnsbench/test/storagedriver/csikit"
)

const (
	// Name is the name of the driver.
	Name     = "gluster.test.cnsbench.dev"
	fuseType = "fuse.glusterfs"
	gib      = 1 << 30
)

// Controller makes directories in the GlusterFS volumes that are mounted below Mounts.
type Controller struct {
	csi.UnimplementedControllerServer
	Mounts string
	locks  csikit.Locks
}

// record is a volume's file beside its directory.
type record struct {
	Name, ID string
	Size     int64
}

// ControllerGetCapabilities implements csi.ControllerServer.
func (c *Controller) ControllerGetCapabilities(context.Context,
	*csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return csikit.ControllerCapabilities(csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER), nil
}

// root is the mount of a GlusterFS volume; it fails if nothing is mounted there, for that would be the local disk.
func (c *Controller) root(volume string) (string, error) {
	dir := filepath.Join(c.Mounts, volume)
	m, err := hostfs.At(dir)
	if err == nil && (volume == "" || strings.ContainsAny(volume, "/.") || m == nil || m.FSType != fuseType) {
		err = status.Errorf(codes.InvalidArgument, "parameter volume: no GlusterFS volume %q is mounted at %s", volume, dir)
	}
	return dir, err
}

// dir is the directory of a volume in its GlusterFS volume, and file that of its record.
func dir(id string) string { return "/csi/" + id }

func (c *Controller) file(root, id string) string { return filepath.Join(root, "csi", id+".json") }

// id is a function of the name, so that a repeated request finds its volume.
func id(volume, name string) string {
	sum := sha256.Sum256([]byte(name))
	return volume + "-" + hex.EncodeToString(sum[:16])
}

// split returns the GlusterFS volume of an id, or "".
func split(id string) string {
	volume, sum, _ := strings.Cut(id, "-")
	if len(sum) != 32 || strings.Contains(id, "/") {
		return ""
	}
	return volume
}

// load returns the record of an id, or nil.
func (c *Controller) load(id string) (*record, error) {
	volume := split(id)
	if volume == "" {
		return nil, nil
	}
	root, err := c.root(volume)
	if err != nil {
		return nil, nil
	}
	text, err := os.ReadFile(c.file(root, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &record{}
	return r, json.Unmarshal(text, r)
}

// save replaces a record at once.
func (c *Controller) save(root string, r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	file := c.file(root, r.ID)
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// CreateVolume implements csi.ControllerServer.
func (c *Controller) CreateVolume(_ context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	switch {
	case req.GetName() == "" || len(req.GetVolumeCapabilities()) == 0:
		return nil, status.Error(codes.InvalidArgument, "volume name or capabilities missing in request")
	case req.GetVolumeContentSource() != nil:
		return nil, status.Error(codes.InvalidArgument, "there are no snapshots and clones")
	}
	for _, capability := range req.GetVolumeCapabilities() {
		if capability.GetBlock() != nil {
			return nil, status.Error(codes.InvalidArgument, "block volume not supported")
		}
	}
	release, err := c.locks.Volume(req.GetName())
	if err != nil {
		return nil, err
	}
	defer release()
	volume := req.GetParameters()["volume"]
	root, err := c.root(volume)
	if err != nil {
		return nil, err
	}
	size := req.GetCapacityRange().GetRequiredBytes()
	if size == 0 {
		size = gib
	}
	r := record{Name: req.GetName(), ID: id(volume, req.GetName()), Size: size}
	old, err := c.load(r.ID)
	if err != nil {
		return nil, err
	}
	if old != nil && old.Size != size {
		return nil, status.Errorf(codes.AlreadyExists, "volume %s exists with size %d", r.Name, old.Size)
	}
	if err := os.MkdirAll(filepath.Join(root, dir(r.ID)), 0o777); err != nil {
		return nil, err
	}
	if err := errors.Join(os.Chmod(filepath.Join(root, dir(r.ID)), 0o777), c.save(root, r)); err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: r.ID, CapacityBytes: size,
		VolumeContext: req.GetParameters()}}, nil
}

// DeleteVolume implements csi.ControllerServer. The directory is renamed first: what is half removed is no volume.
func (c *Controller) DeleteVolume(_ context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "volume ID missing in request")
	}
	release, err := c.locks.Volume(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	r, err := c.load(req.GetVolumeId())
	if err != nil || r == nil {
		return &csi.DeleteVolumeResponse{}, err
	}
	root, err := c.root(split(r.ID))
	if err != nil {
		return nil, err
	}
	gone := filepath.Join(root, "csi", "deleted-"+rand.Text())
	if err := os.Rename(filepath.Join(root, dir(r.ID)), gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, errors.Join(os.RemoveAll(gone), os.Remove(c.file(root, r.ID)))
}

// ControllerExpandVolume implements csi.ControllerServer.
func (c *Controller) ControllerExpandVolume(_ context.Context,
	req *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	if req.GetVolumeId() == "" || req.GetCapacityRange() == nil {
		return nil, status.Error(codes.InvalidArgument, "volume ID or capacity range missing in request")
	}
	release, err := c.locks.Volume(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	r, err := c.load(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, status.Errorf(codes.NotFound, "volume %s not found", req.GetVolumeId())
	}
	root, err := c.root(split(r.ID))
	if err != nil {
		return nil, err
	}
	r.Size = max(r.Size, req.GetCapacityRange().GetRequiredBytes())
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: r.Size}, c.save(root, *r)
}

// ValidateVolumeCapabilities implements csi.ControllerServer.
func (c *Controller) ValidateVolumeCapabilities(_ context.Context,
	req *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if req.GetVolumeId() == "" || len(req.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "volume ID or capabilities missing in request")
	}
	r, err := c.load(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, status.Errorf(codes.NotFound, "volume %s not found", req.GetVolumeId())
	}
	for _, capability := range req.GetVolumeCapabilities() {
		if capability.GetBlock() != nil {
			return &csi.ValidateVolumeCapabilitiesResponse{Message: "block volume not supported"}, nil
		}
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeCapabilities: req.GetVolumeCapabilities()}}, nil
}
