package local

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckLimits(t *testing.T) {
	limits := []limit{
		{"open files", 2, 64, 1064, "RLIMIT_NOFILE", "raise it"},
		{"more threads", 9, 0, 4500, "kernel.pid_max", "raise that"},
	}
	for _, tc := range []struct {
		containers int
		want       []string
	}{
		{0, nil},
		{500, nil},
		{501, []string{"501 containers, which need 1066 open files; RLIMIT_NOFILE allows 1064: raise it, or make fewer",
			"4509 more threads; kernel.pid_max allows 4500: raise that"}},
	} {
		err := checkLimits(tc.containers, limits)
		if (err == nil) != (tc.want == nil) {
			t.Errorf("%d containers: %v", tc.containers, err)
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%d containers: %v, want %q", tc.containers, err, want)
			}
		}
	}
}

// TestMachineLimits checks that the limits of any Linux are found, and are enough for a container.
func TestMachineLimits(t *testing.T) {
	limits := machineLimits()
	found := map[string]bool{}
	for _, l := range limits {
		found[l.name] = true
	}
	for _, want := range []string{"RLIMIT_NOFILE", "kernel.pid_max", "kernel.threads-max",
		"MemAvailable of /proc/meminfo"} {
		if !found[want] {
			t.Errorf("%s was not read: %+v", want, limits)
		}
	}
	if err := checkLimits(1, limits); err != nil {
		t.Error(err)
	}
}

func TestReadLimits(t *testing.T) {
	if got := tasksOf("0.5 0.4 0.3 2/281 30"); got != 281 {
		t.Errorf("%d threads", got)
	}
	if got := availableMemory("MemTotal: 9 kB\nMemAvailable:   1234 kB\n"); got != 1234 {
		t.Errorf("%d KiB", got)
	}
	for text, want := range map[string][]string{
		"0::/a/b\n": {"/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"},
		"9:name=systemd:/\n8:pids:/x\n1:cpu,cpuacct:/y\n": {"/sys/fs/cgroup/pids/x", "/sys/fs/cgroup/pids"},
		"":        nil,
		"broken":  nil,
		"0::../x": {"/sys/fs/cgroup/x", "/sys/fs/cgroup"},
	} {
		if diff := cmp.Diff(want, pidsGroups(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}
