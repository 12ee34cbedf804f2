//go:build e2e && measurement

package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/trace/ioprofile"
	"github.com/cnsbench/cnsbench/internal/trace/iotrace"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// slowVolume is a file system on a loop device that transfers a fixed number of bytes per second, so that latencies
// have a known cause: the 4 KiB operations of the trace take what the machine takes, those of 256 KiB 50 ms.
type slowVolume struct {
	*box
	dir   string // where it is mounted
	group string // control group whose I/O to it is limited
}

func newSlowVolume(t *testing.T) *slowVolume {
	needIOLimits(t)
	needProgram(t, "fio", "losetup", "mkfs.ext4")
	const controller = "/sys/fs/cgroup/blkio"
	if _, err := os.Stat(filepath.Join(controller, "blkio.throttle.read_bps_device")); err != nil {
		t.Skip("needs the root group of the blkio controller of control groups version 1")
	}
	v := &slowVolume{box: newBox(t)}
	v.dir = v.in("volume")
	image := v.write("disk.img", "")
	v.must("truncate", "-s", "512M", image)
	device := strings.TrimSpace(v.must("losetup", "--find", "--show", "--direct-io=on", image))
	v.must("mkfs.ext4", "-q", device)
	v.must("mkdir", v.dir)
	v.must("mount", device, v.dir)
	var st syscall.Stat_t
	if err := syscall.Stat(v.dir, &st); err != nil {
		t.Fatal(err)
	}
	v.group = filepath.Join(controller, filepath.Base(v.box.dir))
	if err := os.Mkdir(v.group, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Rmdir(v.group) })
	for _, direction := range []string{"read", "write"} {
		limit := fmt.Sprintf("%d:%d %d", unix.Major(st.Dev), unix.Minor(st.Dev), 5<<20)
		file := filepath.Join(v.group, "blkio.throttle."+direction+"_bps_device")
		if err := os.WriteFile(file, []byte(limit), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// limited runs a program in the control group.
func (v *slowVolume) limited(program string, args ...string) result {
	const enter = `echo $$ >"$0"/cgroup.procs && exec "$@"`
	return v.finish(v.Context(), v.command(v.Context(), "sh", append([]string{"-c", enter, v.group, program}, args...)...))
}

// record runs fio on the volume, and returns its directory, which has the trace and fio's report.
func (v *slowVolume) record(options ...string) string {
	v.Helper()
	dir := filepath.Join(v.dir, "recorded")
	v.must("mkdir", dir)
	v.must("fio", "--name=fill", "--filename="+dir+"/file", "--size=64M", "--rw=write", "--bs=1M", "--direct=1",
		"--end_fsync=1")
	v.limited("fio", append([]string{"--name=service", "--filename=" + dir + "/file", "--size=64M", "--ioengine=psync",
		"--direct=1", "--time_based", "--lat_percentiles=1", "--write_iolog=" + v.in("trace.log"),
		"--output-format=json+", "--output=" + dir + "/fio.json"}, options...)...).wants(v, 0)
	return dir
}

// latencies are fio's figures of a directory with a report.
func latencies(t *testing.T, dir string) map[string]float64 {
	t.Helper()
	r, err := parser.Fio(parser.Input{Files: os.DirFS(dir)})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, h := range r.Totals {
		for _, q := range []float64{0.5, 0.99} {
			ns, _ := h.Hist.Quantile(q)
			all[fmt.Sprintf("%s p%.0f", h.Metric, 100*q)] = float64(ns)
		}
	}
	for _, s := range r.Scalars {
		if strings.HasSuffix(s.Metric, ".iops") {
			all[s.Metric] = s.Value
		}
	}
	return all
}

// TestProfile records a run of fio, makes a workload of it, runs that on the same volume, and compares what fio
// measured and did in both.
func TestProfile(t *testing.T) {
	v := newSlowVolume(t)
	recorded := v.record("--rw=randrw", "--rwmixread=60", "--bssplit=4k/95:256k/5", "--rate_iops=36,24",
		"--rate_process=poisson", "--runtime=20")
	r := v.limited(v.cnsbench(), "workloads", "profile", "trace.log", "--name", "service", "--volume", v.dir,
		"--rounds", "2").wants(t, 0)
	t.Log(r.stdout)
	storage := filepath.Join(v.dir, "storage")
	v.must("mkdir", storage)
	v.write("profile.yaml", head+`spec:
  library: [{folderSpec: {path: workloads}}]
  actions:
    - name: again
      createObjSpec:
        workload: service
        vars:
          storageClass: hostdir
          extra: "write_lat_log=`+v.in("replayed")+`\nlog_offset=1"
`)
	v.limited(v.cnsbench(), "run", "profile.yaml", "--out", v.in("bundle"), "--storage-dir", storage).wants(t, 0)
	want := latencies(t, recorded)
	got := latencies(t, filepath.Join(v.bundle(), "raw/again-0/fio/output"))
	if len(want) != 6 {
		t.Errorf("figures of the recorded run: %v", want)
	}
	for name, value := range want {
		if c := ioprofile.Compare(name, "", value, got[name]); !c.Fits {
			t.Errorf("%s differs by %.1f %%: %v was recorded, %v replayed", name, 100*c.Difference, value, got[name])
		}
	}
	text, err := os.ReadFile(v.in("trace.log"))
	if err != nil {
		t.Fatal(err)
	}
	trace, err := iotrace.Parse(bytes.NewReader(text), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range ioprofile.CompareTraces(trace.IOs, v.replayed()) {
		t.Logf("replayed: %s %.3f", c.Name, c.Difference)
		if !c.Fits {
			t.Errorf("replayed: %+v", c)
		}
	}
	v.must("rm", "-rf", v.dir+"/recorded")
	v.must("umount", v.dir)
	v.clean()
}

// replayed reads what fio's latency log has of each operation: the time of its end in ms, its latency in ns, direction,
// size and offset.
func (v *slowVolume) replayed() (ios []iotrace.IO) {
	v.Helper()
	text, err := os.ReadFile(v.in("replayed_lat.1.log"))
	if err != nil {
		v.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var end, latency, direction, size, offset int64
		if _, err := fmt.Sscanf(line, "%d, %d, %d, %d, %d", &end, &latency, &direction, &size, &offset); err != nil {
			v.Fatalf("%q: %v", line, err)
		}
		x := iotrace.IO{At: end*1e6 - latency, Latency: latency, Op: iotrace.Read, Offset: offset, Size: size}
		if direction == 1 {
			x.Op = iotrace.Write
		}
		ios = append(ios, x)
	}
	slices.SortFunc(ios, func(a, b iotrace.IO) int { return cmp.Compare(a.At, b.At) })
	for i := range ios[1:] {
		ios[i+1].At -= ios[0].At
	}
	ios[0].At = 0
	return ios
}
