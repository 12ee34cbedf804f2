// Package iolimit limits the I/O of processes by a control group of Linux: io.max of version 2, or the files
// blkio.throttle.* of version 1, which many hosts still mount.
//
// What is limited is I/O that a process itself submits to the device: direct I/O and reads. Writes through the page
// cache are limited with version 2 on file systems with cgroup writeback (ext4, xfs, btrfs) only, and never with
// version 1.
package iolimit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// Controller is the place at which control groups with I/O limits can be made.
type Controller struct {
	// Version of the control groups, 1 or 2.
	Version int
	// Dir is the group below which groups are made.
	Dir string
}

// prefix begins the names of all groups.
const prefix = "cnsbench-"

// Find returns this machine's controller, and changes nothing. The error says what is missing.
func Find() (*Controller, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	c, err := find(mounts, own)
	switch {
	case err != nil:
		return nil, err
	case os.Geteuid() != 0:
		return nil, errors.New("only root can make control groups with I/O limits: run as root")
	case c.Version == 2:
		err = c.hasIO()
	default:
		if _, err = os.Stat(filepath.Join(c.Dir, "blkio.throttle.write_iops_device")); err != nil {
			err = fmt.Errorf("%w (the kernel may lack CONFIG_BLK_DEV_THROTTLING)", err)
		}
	}
	if err == nil {
		if err = unix.Access(c.Dir, unix.W_OK); err != nil {
			err = fmt.Errorf("%w (a container's mount may be read-only)", err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("control groups of version %d at %s: %w", c.Version, c.Dir, err)
	}
	return c, nil
}

// find chooses the hierarchy that has the I/O controller: version 1 if blkio is mounted, since a controller is in one
// hierarchy only; else the root of version 2.
func find(mountinfo, own []byte) (*Controller, error) {
	two := ""
	for line := range bytes.Lines(mountinfo) {
		before, after, ok := strings.Cut(string(line), " - ")
		at, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(at) < 5 || len(kind) < 3 {
			continue
		}
		switch kind[0] {
		case "cgroup":
			if slices.Contains(strings.Split(kind[2], ","), "blkio") {
				return &Controller{Version: 1, Dir: filepath.Join(at[4], below(at[3], groupOf(own, "blkio")))}, nil
			}
		case "cgroup2":
			two = at[4]
		}
	}
	if two == "" {
		return nil, errors.New("no control groups are mounted: want cgroup2 at /sys/fs/cgroup")
	}
	return &Controller{Version: 2, Dir: two}, nil
}

// groupOf returns the group of this process in the hierarchy of a version 1 controller.
func groupOf(own []byte, controller string) string {
	for line := range bytes.Lines(own) {
		parts := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(parts) == 3 && slices.Contains(strings.Split(parts[1], ","), controller) {
			return parts[2]
		}
	}
	return "/"
}

// below returns a group's path below the group that is mounted, as a container has it; "/" if it is not below that.
func below(mounted, group string) string {
	rest, err := filepath.Rel(mounted, group)
	if err != nil || !filepath.IsLocal(rest) {
		return "/"
	}
	return rest
}

// hasIO fails if the root of version 2 does not have the io controller.
func (c *Controller) hasIO() error {
	has, err := os.ReadFile(filepath.Join(c.Dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(string(has)), "io") {
		return errors.New("the io controller is not available: cgroup.controllers has " + strings.TrimSpace(string(has)))
	}
	return c.givesIO()
}

// givesIO fails if groups below the root cannot get the io controller. In a container the root that is mounted is a
// group of the host's: one that has processes cannot give controllers to groups below it (cgroups(7), "no internal
// processes"); the kernel answers EBUSY. The host's own root has no cgroup.type and is exempt.
func (c *Controller) givesIO() error {
	given, err := os.ReadFile(filepath.Join(c.Dir, "cgroup.subtree_control"))
	if err != nil || slices.Contains(strings.Fields(string(given)), "io") {
		return err
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "cgroup.type")); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	switch procs, err := os.ReadFile(filepath.Join(c.Dir, "cgroup.procs")); {
	case err != nil:
		return err
	case len(procs) > 0:
		return c.errOccupied()
	}
	return nil
}

// errOccupied says what to do about a group with processes of its own.
func (c *Controller) errOccupied() error {
	return fmt.Errorf("%[1]s is not the host's root and has processes, so that groups below it cannot get the io "+
		"controller: run outside the container or with the host's control groups (docker run --privileged "+
		"--cgroupns=host), or first move all its processes to a group below it: mkdir %[1]s/init && "+
		"for p in $(cat %[1]s/cgroup.procs); do echo $p > %[1]s/init/cgroup.procs; done", c.Dir)
}

// Group returns the directory of the group of a pod of a run.
func (c *Controller) Group(runID, pod string) string {
	return filepath.Join(c.Dir, prefix+runID+"-"+pod)
}

// IsGroup reports whether dir is a directory that Group returns for some pod of the run.
func (c *Controller) IsGroup(dir, runID string) bool {
	return filepath.Dir(dir) == c.Dir && strings.HasPrefix(filepath.Base(dir), prefix+runID+"-") &&
		filepath.Clean(dir) == dir
}

// Make makes a group with limits on devices (MAJOR:MINOR), and checks that the kernel has them.
func (c *Controller) Make(dir string, devices []string, l engine.IOLimit) error {
	if c.Version == 2 { // groups below the root get the controller
		err := os.WriteFile(filepath.Join(c.Dir, "cgroup.subtree_control"), []byte("+io"), 0)
		if errors.Is(err, unix.EBUSY) { // a process came after Find
			return fmt.Errorf("%w: %w", err, c.errOccupied())
		}
		if err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, w := range c.writes(devices, l) {
		path := filepath.Join(dir, w.file)
		if err := os.WriteFile(path, []byte(w.text), 0); err != nil {
			return fmt.Errorf("set limit %q: %w", w.text, err)
		}
		device, _, _ := strings.Cut(w.text, " ")
		got, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(strings.Split(string(got), "\n"), func(line string) bool {
			return strings.HasPrefix(line, device+" ")
		}) {
			return fmt.Errorf("set limit %q: the kernel does not list it in %s", w.text, path)
		}
	}
	return nil
}

// write is a text for a file of a group.
type write struct{ file, text string }

// writes returns what sets the limits. A file takes one device at a time.
func (c *Controller) writes(devices []string, l engine.IOLimit) (list []write) {
	limits := []struct {
		one, two string // name of the file of version 1, and of the key of version 2
		value    int64
	}{{"read_iops", "riops", l.ReadIOPS}, {"write_iops", "wiops", l.WriteIOPS}, {"read_bps", "rbps", l.ReadBps},
		{"write_bps", "wbps", l.WriteBps}}
	for _, device := range devices {
		text := device
		for _, x := range limits {
			switch {
			case x.value == 0:
			case c.Version == 1:
				list = append(list, write{"blkio.throttle." + x.one + "_device", fmt.Sprintf("%s %d", device, x.value)})
			default:
				text += fmt.Sprintf(" %s=%d", x.two, x.value)
			}
		}
		if c.Version == 2 {
			list = append(list, write{"io.max", text})
		}
	}
	return list
}

// Add moves a process into a group; its children will be in it too.
func Add(dir string, pid int) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		return fmt.Errorf("move a process into the control group %s: %w", dir, err)
	}
	return nil
}

// removeTimeout is how long processes that were killed may take to leave a group.
const removeTimeout = 5 * time.Second

// Remove removes a group whose processes have ended. A missing group is no error.
func Remove(dir string) error {
	for end := time.Now().Add(removeTimeout); ; time.Sleep(10 * time.Millisecond) {
		err := unix.Rmdir(dir)
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist):
			return nil
		case !errors.Is(err, unix.EBUSY) || time.Now().After(end):
			return fmt.Errorf("remove the control group %s: %w", dir, err)
		}
	}
}

// Device returns the disk of the file system or the block device at path, as MAJOR:MINOR. Limits apply to whole disks,
// so that a partition's is its disk. The error says why there is none.
func Device(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	dev := st.Dev
	if st.Mode&unix.S_IFMT == unix.S_IFBLK {
		dev = st.Rdev
	}
	id := fmt.Sprintf("%d:%d", unix.Major(dev), unix.Minor(dev))
	if unix.Major(dev) == 0 {
		return "", fmt.Errorf("%s is on no block device of its own (%s: tmpfs, overlay, btrfs or network): "+
			"its I/O cannot be limited by a control group", path, id)
	}
	sys, err := filepath.EvalSymlinks("/sys/dev/block/" + id)
	if err != nil {
		return "", fmt.Errorf("device %s of %s: %w", id, path, err)
	}
	if _, err := os.Stat(filepath.Join(sys, "partition")); err != nil {
		return id, nil //nolint:nilerr // no partition: a disk
	}
	disk, err := os.ReadFile(filepath.Join(filepath.Dir(sys), "dev"))
	if err != nil {
		return "", fmt.Errorf("disk of partition %s: %w", id, err)
	}
	return strings.TrimSpace(string(disk)), nil
}
