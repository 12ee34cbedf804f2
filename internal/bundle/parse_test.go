package bundle

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/op"
)

func TestProcParsers(t *testing.T) {
	const cpuinfo = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\nflags\t\t: fpu vme hypervisor\n\nprocessor\t: 1\nmodel name\t: other\n"
	const arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
	const mountinfo = `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 22 0:26 / /mnt/a\040b rw,nosuid shared:5 master:2 - tmpfs tmp\134fs rw,size=10k
31 22 7:1 /sub /mnt rw - xfs /dev/loop1 rw
32 22 7:2 / /mnt rw - btrfs /dev/loop2 rw
short line
`
	mounts := []mountEntry{
		{"/", "ext4", "/dev/vda", "rw,relatime;rw,discard"},
		{"/mnt/a b", "tmpfs", `tmp\fs`, "rw,nosuid;rw,size=10k"},
		{"/mnt", "xfs", "/dev/loop1", "rw;rw"},
		{"/mnt", "btrfs", "/dev/loop2", "rw;rw"},
	}
	hold := func(path string) string { m, _ := mountOf(path, mounts); return m.Type }
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"cpu", parseCPUModel(cpuinfo), "Intel(R) Xeon(R)"},
		{"cpu arm", parseCPUModel(arm), "implementer 0x41 part 0xd0c"},
		{"cpu empty", parseCPUModel(""), ""},
		{"hypervisor", hasFlag(cpuinfo, "hypervisor"), true},
		{"hyper", hasFlag(cpuinfo, "hyper"), false},
		{"memory", parseMeminfo("MemTotal:       24683 kB\nMemFree: 1 kB\nMemAvailable:   100 kB\nSwapTotal: 0 kB\n"),
			Memory{Total: 24683 << 10, Available: 100 << 10}},
		{"os", parseOSRelease("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
			"Debian GNU/Linux 12 (bookworm)"},
		{"cgroup", parseCgroup("1:cpu:/a\n0::/user.slice/x\n"), "/user.slice/x"},
		{"cgroup v1", parseCgroup("1:cpu:/a\n"), ""},
		{"load", parseLoad("0.50 1.25 2 3/400 999\n"), [3]float64{0.5, 1.25, 2}},
		{"scheduler", parseScheduler("none [mq-deadline] kyber"), "mq-deadline"},
		{"scheduler only", parseScheduler("none"), "none"},
		{"mountinfo", parseMountinfo(mountinfo), mounts},
		{"mount root", hold("/home/x"), "ext4"},
		{"mount blank", hold("/mnt/a b/c"), "tmpfs"},
		{"mount hidden", hold("/mnt/x"), "btrfs"},
		{"mount prefix of a name", hold("/mntx"), "ext4"},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func FuzzMountinfo(f *testing.F) {
	f.Add("22 1 254:0 / /a\\040 rw - ext4 /dev/vda rw\n")
	f.Add("22 1 254:0 / /\\9 rw - ext4 \\ rw\n")
	f.Fuzz(func(t *testing.T, s string) {
		for _, m := range parseMountinfo(s) {
			if m.Type == "" {
				t.Errorf("%q: a mount without a type", s)
			}
		}
	})
}

// FuzzFrames checks that invalid data after valid frames does not affect those frames. The reader returns an error, and
// ValidLen covers at least the valid frames.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("payload"), []byte{})
	f.Add([]byte("p"), []byte{1, 0, 0, 0})
	f.Add([]byte("p"), []byte{0xff, 0xff, 0xff, 3, 0, 0, 0, 0, 9})
	f.Add([]byte("p"), make([]byte, 20))
	f.Fuzz(func(t *testing.T, payload, garbage []byte) {
		if len(payload) == 0 {
			return
		}
		sound := append(make([]byte, frameHeader), payload...)
		sealFrame(sound)
		r := newFrameReader(bytes.NewReader(append(append([]byte(nil), sound...), garbage...)))
		got, err := r.Next()
		if err != nil || !bytes.Equal(got, payload) {
			t.Fatalf("%q, %v", got, err)
		}
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, io.EOF) && !errors.Is(err, errTorn) {
			t.Fatal(err)
		}
		if r.ValidLen < int64(len(sound)) || r.ValidLen > int64(len(sound)+len(garbage)) ||
			(errors.Is(err, io.EOF) && r.ValidLen != int64(len(sound)+len(garbage))) {
			t.Fatalf("good %d of %d + %d, %v", r.ValidLen, len(sound), len(garbage), err)
		}
	})
}

// FuzzCanary checks that decoded batches can be encoded and decoded again without a change.
func FuzzCanary(f *testing.F) {
	f.Add(appendCanary(nil, "fio-0", "data", []op.CanaryIO{{Intended: 1, Started: op.Never, Ended: math.MaxInt64,
		Write: true, Errno: 5}}))
	f.Add([]byte{0, 0, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Add([]byte{200})
	f.Fuzz(func(t *testing.T, b []byte) {
		batches, err := new(canaryDecoder).decode(b)
		if err != nil {
			return
		}
		var again []byte
		for _, c := range batches {
			again = appendCanary(again, c.Instance, c.Volume, c.IOs)
		}
		second, err := new(canaryDecoder).decode(again)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(batches, second); d != "" {
			t.Error(d)
		}
	})
}

// FuzzLedger checks that readLedger accepts any text and reads it up to the first invalid line.
func FuzzLedger(f *testing.F) {
	f.Add(`{"add":{"kind":"v","name":"a"}}` + "\n" + `{"done":{"kind":"v","name":"a"}}` + "\n{")
	f.Add("null\n[]\n")
	f.Fuzz(func(t *testing.T, s string) {
		state, good, err := readLedger(bytes.NewBufferString(s))
		if err != nil || good > int64(len(s)) {
			t.Fatalf("good %d of %d, %v", good, len(s), err)
		}
		again, _, err := readLedger(bytes.NewBufferString(s[:good]))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(state.list(), again.list()); d != "" {
			t.Error(d)
		}
	})
}

// TestCgroupDir: the limits of the own group are read also where a container sees it as the root.
func TestCgroupDir(t *testing.T) {
	root := t.TempDir()
	own := filepath.Join(root, "user.slice", "x")
	for _, dir := range []string{root, own} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.controllers"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{"/user.slice/x": own, "/": root, "/kubepods/y": root} {
		if got := cgroupDir(root, path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
