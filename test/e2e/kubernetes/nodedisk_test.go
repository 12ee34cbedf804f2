//go:build e2e

package kubernetes

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// testNodeDiskFull checks that a run fails and names the workload and the cause if the disk of a node fills: its
// kubelet evicts the pods.
func testNodeDiskFull(p *project) {
	p.breaks()
	disk := p.smallDisk("node2")
	c := p.command("local", onBothNodes("5m"))
	p.started(c)
	fill(p, filepath.Join(disk, "fill"))
	p.removes(c)
	p.ended(c, 2, "workload two-0 failed: container writer was killed by SIG",
		": Evicted: The node was low on resource: ephemeral-storage")
}

// smallDisk gives a node's kubelet a file system of its own, of 256 MiB, until the end of the test. It returns its
// directory.
func (p *project) smallDisk(node string) string {
	p.t.Helper()
	dir := filepath.Join(testbedDir(), node, "kubelet")
	if _, err := os.Stat(dir); err != nil {
		dir = filepath.Join("/var/lib/cnsbench-testbed", node, "kubelet")
	}
	image := filepath.Join(testbedDir(), node+"-disk.img")
	parts := []string{"kubelet-" + node, "registrar-" + node}
	run := func(name string, args ...string) {
		p.t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			p.t.Errorf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	p.t.Cleanup(func() {
		for _, part := range parts {
			p.testbed("stop", part)
		}
		run("umount", "--recursive", dir)
		_ = os.Remove(image)
		for _, part := range parts {
			p.testbed("restart", part)
		}
		p.nodeReady(context.Background(), node)
	})
	for _, part := range parts {
		p.testbed("stop", part)
	}
	run("truncate", "--size=256M", image)
	run("mkfs.ext4", "-q", "-m", "0", image)
	run("mount", "-o", "loop", image, dir)
	for _, part := range parts {
		p.testbed("restart", part)
	}
	p.nodeReady(p.t.Context(), node)
	return dir
}

// fill leaves a file system without a free byte, by a file that is removed at the end of the test.
func fill(p *project, file string) {
	p.t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(file), &fs); err != nil {
		p.t.Fatal(err)
	}
	f, err := os.Create(file)
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	p.t.Cleanup(func() { _ = os.Remove(file) })
	if err := unix.Fallocate(int(f.Fd()), 0, 0, int64(fs.Bavail)*fs.Bsize-(1<<20)); err != nil {
		p.t.Fatal(err)
	}
}
