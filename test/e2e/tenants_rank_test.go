//go:build e2e && measurement

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// slowPool makes a storage directory on a device that writes at most 500 times and 10 MiB per second, for all
// processes together. It is ext4 on a loop device with buffered I/O, whose image is in ext4 on a second loop device.
// Both file systems write back from the root control group, in which the kernel throttles the second device.
func slowPool(t *testing.T) string {
	t.Helper()
	const throttle = "/sys/fs/cgroup/blkio/blkio.throttle."
	if _, err := os.Stat(throttle + "write_bps_device"); err != nil {
		t.Skip("needs the root group of the blkio controller of control groups version 1, to make a slow device of a loop device")
	}
	run := func(program string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", program, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	dir, err := os.MkdirTemp("", "pool-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	undo := func(program string, args ...string) {
		t.Cleanup(func() {
			if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
				t.Errorf("%s %v: %v\n%s", program, args, err, out)
			}
		})
	}
	mounted := func(image, at string) (device string) {
		run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
		device = run("losetup", "-f", "--show", image)
		undo("losetup", "-d", device)
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		run("mount", device, at)
		undo("umount", at)
		return device
	}
	outer, inner := filepath.Join(dir, "outer.img"), filepath.Join(dir, "outer", "inner.img")
	run("truncate", "-s", "2G", outer)
	device := mounted(outer, filepath.Join(dir, "outer"))
	run("fallocate", "-l", "1G", inner)
	mounted(inner, filepath.Join(dir, "pool"))
	id, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), "dev"))
	if err != nil {
		t.Fatal(err)
	}
	for file, limit := range map[string]string{"write_iops_device": " 500", "write_bps_device": " 10485760"} {
		set := func(limit string) error {
			return os.WriteFile(throttle+file, []byte(strings.TrimSpace(string(id))+limit), 0)
		}
		if err := set(limit); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = set(" 0") })
	}
	return filepath.Join(dir, "pool")
}

// TestTenantsRank runs examples/tenants.yaml with shorter steps on a pool whose speed is known, and with a separate
// pool that is on the disk of the run's scratch directory. The comparison must rank the variants: no limit, limit,
// separate pool.
func TestTenantsRank(t *testing.T) {
	needProgram(t, "fio", "mkfs.ext4", "losetup")
	needIOLimits(t)
	pool := slowPool(t)
	b := newBox(t)
	text, err := os.ReadFile(filepath.Join(module, "examples", "tenants.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	short := strings.NewReplacer("btrfs", `"null"`, "loopfile,", "hostdir,", "runtime: 49s", "runtime: 17s", "runtime: 48}",
		"runtime: 16}", "startAfter: 12s", "startAfter: 4s", "startAfter: 24s", "startAfter: 8s", "startAfter: 36s",
		"startAfter: 12s", "runtime: 12}", "runtime: 4}").Replace(string(text))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute) // 21 trials of 20 s
	defer cancel()
	b.finish(ctx, b.command(ctx, b.cnsbench(), "study", "run", b.write("tenants.yaml", short), "--out", b.in("study"),
		"--storage-dir", pool)).wants(t, 0)
	t.Log(b.run("show", b.in("study")).wants(t, 0).stdout)
	t.Log(b.run("compare", b.in("study"), "--factor", "variant").wants(t, 0).stdout)
	var c struct {
		Rankings []struct {
			Metric          string
			Levels, Between []string
		}
	}
	decode(b, b.run("compare", b.in("study"), "--factor", "variant", "--output", "json").wants(t, 0).stdout, &c)
	ranked := false
	for _, r := range c.Rankings {
		ranked = ranked || r.Metric == "compliance(gold)" &&
			slices.Equal(r.Levels, []string{"separate pool", "limit", "no limit"}) && slices.Equal(r.Between, []string{">", ">"})
	}
	if !ranked {
		t.Errorf("the variants are not ranked separate pool > limit > no limit: %+v", c.Rankings)
	}
	b.clean()
}
