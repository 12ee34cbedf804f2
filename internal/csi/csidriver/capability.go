package csidriver

import (
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// checkCapabilities rejects capabilities that no volume of this backend can have.
func (d *driver) checkCapabilities(caps []*csi.VolumeCapability) error {
	if len(caps) == 0 {
		return invalid("the request lacks volume capabilities")
	}
	for _, c := range caps {
		if (c.GetBlock() != nil) != (caps[0].GetBlock() != nil) {
			return invalid("a volume is either raw block or a file system, not both")
		}
		if err := d.checkCapability(c); err != nil {
			return err
		}
	}
	return nil
}

func (d *driver) checkCapability(c *csi.VolumeCapability) error {
	if c.GetBlock() == nil && c.GetMount() == nil {
		return invalid("the volume capability lacks an access type")
	}
	if mode := c.GetAccessMode().GetMode(); !slices.Contains(d.backend.modes(), mode) {
		return invalid("backend %s cannot serve the access mode %s", d.opts.Backend, mode)
	}
	if _, stages := d.backend.(stager); !stages && len(c.GetMount().GetMountFlags()) > 0 {
		return invalid("backend %s mounts no file system of the volume's own and takes no mount options",
			d.opts.Backend)
	}
	return nil
}

// fits fails unless the volume has a capability.
func (d *driver) fits(v volume, c *csi.VolumeCapability) error {
	if err := d.checkCapability(c); err != nil {
		return err
	}
	if v.Block != (c.GetBlock() != nil) {
		return invalid("volume %s has the other access type (raw block: %t)", v.ID, v.Block)
	}
	if fs := c.GetMount().GetFsType(); fs != "" && v.FSType != "" && fs != v.FSType {
		return invalid("volume %s has the file system %s, not %s", v.ID, v.FSType, fs)
	}
	return nil
}

func manyNodes(mode csi.VolumeCapability_AccessMode_Mode) bool {
	switch mode {
	case csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY, csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:
		return true
	}
	return false
}
