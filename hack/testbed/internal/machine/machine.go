// Package machine changes the machine for a test bed, and undoes that: packages, network, cgroups, mounts. Each change
// is
// made only where it is missing, and each undoing succeeds where nothing is left to undo.
package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/settings"
)

// packages are the Debian packages that a test bed needs, by a file that each brings.
var packages = map[string]string{
	"/usr/sbin/runc":      "runc",
	"/usr/lib/cni/bridge": "containernetworking-plugins",
	"/sbin/ip":            "iproute2",
	"/usr/sbin/iptables":  "iptables",
	"/usr/sbin/nft":       "nftables",
	"/usr/bin/nsenter":    "util-linux",
	"/usr/bin/fio":        "fio",
	"/usr/sbin/mkfs.xfs":  "xfsprogs",
	"/usr/bin/btrfs":      "btrfs-progs",
	"/usr/sbin/mkfs.ext4": "e2fsprogs",
	"/usr/bin/findmnt":    "util-linux",
	"/usr/bin/dash":       "dash",
	"/usr/bin/grep":       "grep",
	"/usr/bin/sed":        "sed",
}

// Missing lists the packages that are not installed. Where a distribution keeps a program elsewhere on the PATH, that
// will
// do.
func Missing() []string { return missing(packages) }

func missing(packages map[string]string) []string {
	var missing []string
	for file, name := range packages {
		_, err := os.Stat(file)
		// A plugin is found by its directory only, and others have its name: iproute2 has a bridge too.
		if dir := filepath.Base(filepath.Dir(file)); err != nil && (dir == "bin" || dir == "sbin") {
			_, err = exec.LookPath(filepath.Base(file))
		}
		if err != nil && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing
}

// Install installs packages with apt-get, or names them.
func Install(names []string) error {
	if len(names) == 0 {
		return nil
	}
	need := strings.Join(names, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("these Debian packages, or what other systems call them, are missing: %s", need)
	}
	fmt.Println("installing", need, "(apt-get)")
	for _, args := range [][]string{{"update", "-q"},
		append([]string{"install", "-q", "-y", "--no-install-recommends"}, names...)} {
		cmd := exec.Command("apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w; install these yourself: %s\n%s", args[0], err, need, last(out))
		}
	}
	return nil
}

// Run runs a program and returns what it printed.
func Run(argv ...string) (string, error) {
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, last(out))
	}
	return string(out), nil
}

func last(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// all runs commands until one fails; each is split at spaces.
func all(commands ...string) error {
	for _, c := range commands {
		if _, err := Run(strings.Fields(c)...); err != nil {
			return err
		}
	}
	return nil
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// linked says whether a network interface is there. The kernel is asked, for /sys may show another namespace's.
func linked(name string) bool { _, err := net.InterfaceByName(name); return err == nil }

// NetworkUp makes the bridge and each node's namespace, with routes to every node's pods.
func NetworkUp() error {
	if !linked(settings.Bridge) {
		if err := all("ip link add "+settings.Bridge+" type bridge",
			"ip addr add "+settings.HostCIDR+" dev "+settings.Bridge,
			"ip link set "+settings.Bridge+" up"); err != nil {
			return err
		}
	}
	// Pods of one node reach those of the other, and the machine, by routes.
	if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+settings.Bridge+"/forwarding", []byte("1"), 0); err != nil {
		return err
	}
	for _, n := range settings.Nodes() {
		if err := namespaceUp(n); err != nil {
			return fmt.Errorf("the network of %s: %w", n.Name, err)
		}
	}
	return nil
}

func namespaceUp(n settings.Node) error {
	if !exists("/run/netns/" + n.Netns) {
		if err := all("ip netns add " + n.Netns); err != nil {
			return err
		}
	}
	in := "ip -n " + n.Netns + " "
	if !linked(n.Veth) {
		if err := all("ip link add "+n.Veth+" type veth peer name eth0 netns "+n.Netns,
			"ip link set "+n.Veth+" master "+settings.Bridge+" up",
			in+"addr add "+n.Addr+"/24 dev eth0", in+"link set eth0 up", in+"link set lo up"); err != nil {
			return err
		}
	}
	commands := []string{"ip route replace " + n.Pods + " via " + n.Addr,
		in + "route replace default via " + settings.Host}
	for _, other := range settings.Nodes() {
		if other.Name != n.Name {
			commands = append(commands, in+"route replace "+other.Pods+" via "+other.Addr)
		}
	}
	if err := all(commands...); err != nil {
		return err
	}
	_, err := Run("nsenter", "--net=/run/netns/"+n.Netns, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
	return err
}

// NetworkDown removes bridge, veths and namespaces; routes and rules inside go with them.
func NetworkDown() error {
	var problems []error
	for _, n := range settings.Nodes() {
		if linked(n.Veth) {
			problems = append(problems, all("ip link del "+n.Veth))
		}
		if exists("/run/netns/" + n.Netns) {
			problems = append(problems, all("ip netns del "+n.Netns))
		}
	}
	if linked(settings.Bridge) {
		problems = append(problems, all("ip link del "+settings.Bridge))
	}
	return errors.Join(problems...)
}

// Cut takes a node off the network; Heal puts it back.
func Cut(n settings.Node) error { return all("ip link set " + n.Veth + " down") }

// Heal undoes Cut.
func Heal(n settings.Node) error { return all("ip link set " + n.Veth + " up") }

// IsCut says whether a node is off the network.
func IsCut(n settings.Node) bool {
	veth, err := net.InterfaceByName(n.Veth)
	return err == nil && veth.Flags&net.FlagUp == 0
}

const cgroupRoot = "/sys/fs/cgroup"

// hierarchies are the mounted cgroup hierarchies: one on a unified machine, else one per controller.
func hierarchies() ([]string, error) {
	if exists(filepath.Join(cgroupRoot, "cgroup.controllers")) {
		return []string{cgroupRoot}, nil
	}
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, e := range entries {
		// "unified" of a hybrid machine has no controllers, and nobody looks there.
		if e.IsDir() && e.Name() != "unified" && exists(filepath.Join(cgroupRoot, e.Name(), "cgroup.procs")) {
			dirs = append(dirs, filepath.Join(cgroupRoot, e.Name()))
		}
	}
	return dirs, nil
}

// CgroupsUp makes the root cgroup of each node's kubelet.
func CgroupsUp() error {
	dirs, err := hierarchies()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		unified := dir == cgroupRoot
		if unified {
			if err := delegate(dir); err != nil {
				return err
			}
		}
		for _, n := range settings.Nodes() {
			own := filepath.Join(dir, n.Cgroup)
			if err := os.MkdirAll(own, 0o755); err != nil {
				return err
			}
			if unified {
				err = delegate(own)
			} else if filepath.Base(dir) == "cpuset" {
				err = inheritCPUs(own)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// delegate hands all controllers of a unified cgroup to its children.
func delegate(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, c := range strings.Fields(string(text)) {
		// Some cannot be handed on, such as rdma in places; a kubelet says which it lacks.
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0)
	}
	return nil
}

// inheritCPUs fills in a cpuset of version 1, which begins empty and takes no process.
func inheritCPUs(dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), bytes.TrimSpace(text), 0); err != nil {
			return err
		}
	}
	return nil
}

// PodProcesses lists the processes in a node's cgroup: those of its pods.
func PodProcesses(n settings.Node) ([]int, error) {
	dirs, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(dir, n.Cgroup), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.Name() != "cgroup.procs" {
				return skipGone(err)
			}
			text, err := os.ReadFile(path)
			for field := range strings.FieldsSeq(string(text)) {
				var pid int
				if _, err := fmt.Sscan(field, &pid); err == nil && !slices.Contains(pids, pid) {
					pids = append(pids, pid)
				}
			}
			return skipGone(err)
		})
		if err != nil {
			return nil, err
		}
	}
	return pids, nil
}

func skipGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// CgroupsDown removes the nodes' cgroups, which have to be empty of processes.
func CgroupsDown() error {
	dirs, err := hierarchies()
	if err != nil {
		return err
	}
	if exists(filepath.Join(cgroupRoot, "unified/cgroup.procs")) { // runc makes cgroups there on a hybrid machine
		dirs = append(dirs, filepath.Join(cgroupRoot, "unified"))
	}
	var problems []error
	for _, dir := range dirs {
		for _, n := range settings.Nodes() {
			problems = append(problems, removeTree(filepath.Join(dir, n.Cgroup)))
		}
	}
	return errors.Join(problems...)
}

// removeTree removes a cgroup with those below it, the deepest first.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return skipGone(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return skipGone(os.Remove(dir))
}

// UnmountBelow unmounts everything that is mounted below the folders, the latest first; lazily what stays busy.
func UnmountBelow(dirs ...string) error {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var problems []error
	points := mountPoints(string(text))
	slices.Reverse(points)
	for _, point := range points {
		if !slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(point, dir+"/") }) {
			continue
		}
		err := unix.Unmount(point, unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EBUSY) {
			err = unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		}
		if err != nil && !errors.Is(err, unix.EINVAL) { // gone with another
			problems = append(problems, fmt.Errorf("unmounting %s: %w", point, err))
		}
	}
	return errors.Join(problems...)
}

// mountPoints reads the mount points from mountinfo, in the order of mounting.
func mountPoints(mountinfo string) []string {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var points []string
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 4 {
			points = append(points, unescape.Replace(fields[4]))
		}
	}
	return points
}
