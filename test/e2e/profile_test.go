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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/cnsbench/cnsbench/internal/trace/ioprofile"
	"github.com/cnsbench/cnsbench/internal/trace/iotrace"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// slowFS is a file system whose reads and writes take a time that depends on their size alone, so that latencies have a
// known cause. A limit of bytes per second is no such cause: it lets bursts pass, so that the latency of an operation
// depends on those before it.
type slowFS struct{ fuse.RawFileSystem }

// delayOf is how long an operation takes: 5.2 ms of 4 KiB, 17.5 ms of 256 KiB.
func delayOf(size int) time.Duration {
	return 5*time.Millisecond + time.Duration(size)*time.Second/(20<<20)
}

// Open turns direct I/O into FUSE's own, which keeps the sizes of the caller: what is beneath does not need alignment.
func (s slowFS) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	in.Flags &^= syscall.O_DIRECT
	defer func() { out.OpenFlags |= fuse.FOPEN_DIRECT_IO }()
	return s.RawFileSystem.Open(cancel, in, out)
}

func (s slowFS) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	in.Flags &^= syscall.O_DIRECT
	defer func() { out.OpenFlags |= fuse.FOPEN_DIRECT_IO }()
	return s.RawFileSystem.Create(cancel, in, name, out)
}

func (s slowFS) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	end := time.Now().Add(delayOf(int(in.Size)))
	defer func() { time.Sleep(time.Until(end)) }()
	return s.RawFileSystem.Read(cancel, in, buf)
}

func (s slowFS) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	end := time.Now().Add(delayOf(len(data)))
	defer func() { time.Sleep(time.Until(end)) }()
	return s.RawFileSystem.Write(cancel, in, data)
}

// slowVolume is a box with such a file system.
type slowVolume struct {
	*box
	dir     string // where it is mounted
	unmount func()
}

func newSlowVolume(t *testing.T) *slowVolume {
	needRoot(t)
	needProgram(t, "fio")
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("needs FUSE: ", err)
	}
	v := &slowVolume{box: newBox(t)}
	v.dir = v.in("volume")
	v.must("mkdir", v.dir, v.in("beneath"))
	root, err := fs.NewLoopbackRoot(v.in("beneath"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := fuse.NewServer(slowFS{fs.NewNodeFS(root, &fs.Options{})}, v.dir,
		&fuse.MountOptions{DirectMountStrict: true, AllowOther: true, MaxWrite: 1 << 20, FsName: "slow"})
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve()
	v.unmount = sync.OnceFunc(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(v.unmount)
	if err := server.WaitMount(); err != nil {
		t.Fatal(err)
	}
	return v
}

// record runs fio on the volume, and returns its directory, which has the trace and fio's report.
func (v *slowVolume) record(options ...string) string {
	v.Helper()
	dir := filepath.Join(v.dir, "recorded")
	v.must("mkdir", dir)
	v.must("fio", "--name=fill", "--filename="+dir+"/file", "--size=64M", "--rw=write", "--bs=1M", "--direct=1",
		"--end_fsync=1")
	v.must("fio", append([]string{"--name=service", "--filename=" + dir + "/file", "--size=64M", "--ioengine=psync",
		"--direct=1", "--time_based", "--lat_percentiles=1", "--write_iolog=" + v.in("trace.log"),
		"--output-format=json+", "--output=" + dir + "/fio.json"}, options...)...)
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
	recorded := v.record("--rw=randrw", "--rwmixread=60", "--bssplit=4k/95:256k/5", "--norandommap", "--rate_iops=24,16",
		"--rate_process=poisson", "--runtime=30")
	t.Log(v.run("workloads", "profile", "trace.log", "--name", "service").wants(t, 0).stdout)
	storage := filepath.Join(v.dir, "storage")
	v.must("mkdir", storage)
	v.keepLatencyLog("workloads/service/pod.yaml")
	v.write("profile.yaml", head+`spec:
  library: [{folderSpec: {path: workloads}}]
  actions:
    - name: again
      createObjSpec:
        workload: service
        vars:
          storageClass: hostdir
          extra: "write_lat_log=/output/replayed\nlog_offset=1"
`)
	v.run("run", "profile.yaml", "--out", v.in("bundle"), "--storage-dir", storage).wants(t, 0)
	want := latencies(t, recorded)
	got := latencies(t, v.in(replayedOutput))
	if len(want) != 6 {
		t.Errorf("figures of the recorded run: %v", want)
	}
	for _, kind := range []string{"read", "write"} { // what was recorded is the file system's time
		for q, size := range map[string]int{" p50": 4 << 10, " p99": 256 << 10} {
			known := ioprofile.Compare(kind+q, "ns", float64(delayOf(size)), want[kind+q])
			t.Logf("recorded %+v", known)
			if !known.Fits {
				t.Errorf("recorded %+v: want the time of %d bytes", known, size)
			}
		}
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
	v.unmount()
	v.clean()
}

// replayedOutput has the files of the replay, in the bundle.
const replayedOutput = "bundle/raw/again-0/fio/output"

// keepLatencyLog lets an entry keep fio's log of latencies too.
func (v *slowVolume) keepLatencyLog(file string) {
	v.Helper()
	text, err := os.ReadFile(v.in(file))
	if err != nil {
		v.Fatal(err)
	}
	changed := strings.Replace(string(text), "outputFile: ", "outputFile: /output/replayed_lat.1.log, ", 1)
	if changed == string(text) {
		v.Fatalf("%s keeps no file:\n%s", file, text)
	}
	v.write(file, changed)
}

// replayed reads what fio's latency log has of each operation: the time of its end in ms, its latency in ns, direction,
// size and offset.
func (v *slowVolume) replayed() (ios []iotrace.IO) {
	v.Helper()
	text, err := os.ReadFile(v.in(replayedOutput, "replayed_lat.1.log"))
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
