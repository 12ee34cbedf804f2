package storagedriver_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/test/rotation"
)

// createAtOnce sends requests for the names at once and returns the ids, and the errors of those that failed.
func (d *driver) createAtOnce(names []string, started func()) (ids []string, failed []error) {
	d.t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, name := range names {
		wg.Go(func() {
			resp, err := d.CreateVolume(d.t.Context(), &csi.CreateVolumeRequest{Name: name, Parameters: d.class.own(),
				Secrets: d.secrets, CapacityRange: &csi.CapacityRange{RequiredBytes: 64 * mib},
				VolumeCapabilities: []*csi.VolumeCapability{d.capability()}})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, err)
				return
			}
			ids = append(ids, resp.GetVolume().GetVolumeId())
		})
	}
	started()
	wg.Wait()
	return ids, failed
}

// TestCephAborts checks that of requests with one name at once one is executed and the others answer ABORTED.
func TestCephAborts(t *testing.T) {
	c := cephUp(t)
	for _, name := range []string{"cephfs-r1", "rbd-r1"} {
		t.Run(name, func(t *testing.T) {
			d := cephDriver(t, c, name)
			names := make([]string, 8)
			for i := range names {
				names[i] = "aborts"
			}
			ids, failed := d.createAtOnce(names, func() {})
			for _, id := range ids {
				if id != ids[0] {
					t.Errorf("two volumes of one name: %v", ids)
				}
			}
			for _, err := range failed {
				const want = "an operation with the given Volume ID aborts already exists"
				if status.Code(err) != codes.Aborted || status.Convert(err).Message() != want {
					t.Errorf("%v, want ABORTED: %s", err, want)
				}
			}
			if len(ids) == 0 || len(failed) == 0 {
				t.Errorf("%d executed, %d refused, want both", len(ids), len(failed))
			}
			v, _ := d.create("aborts", 64*mib, nil)
			d.remove(v)
		})
	}
}

// TestCephRestart kills the driver while it makes volumes, starts it again, and repeats the requests: each volume
// exists once, and can be removed.
func TestCephRestart(t *testing.T) {
	c := cephUp(t)
	bin := os.Getenv("STORAGE_BIN")
	if bin == "" {
		t.Skip("needs $STORAGE_BIN, where cephdriver is: run make ceph-test")
	}
	all := []string{"cephfs-r1", "rbd-r1"}
	for _, name := range all {
		t.Run(name, func(t *testing.T) {
			rotation.Turn(t, 1, all, name)
			d := cephDriver(t, c, name)
			names := make([]string, 30)
			for i := range names {
				names[i] = fmt.Sprintf("restart-%d", i)
			}
			_, failed := d.createAtOnce(names, func() {
				time.Sleep(30 * time.Millisecond) // of the second or more that they take
				killDriver(t, c)
			})
			t.Logf("%d of %d requests failed with the driver", len(failed), len(names))
			if len(failed) == 0 {
				t.Error("all requests were answered before the driver was killed")
			}
			restart := exec.Command("../../hack/storage/ceph.sh", "up", c.dir, bin)
			if out, err := restart.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			d = cephDriver(t, c, name)
			ids := map[string]bool{}
			for _, name := range names {
				v, _ := d.create(name, 64*mib, nil)
				ids[v.VolumeId] = true
				d.remove(v)
			}
			if len(ids) != len(names) {
				t.Errorf("%d volumes of %d names", len(ids), len(names))
			}
		})
	}
	nothingLeft(t, c)
}

func killDriver(t *testing.T, c cluster) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, "run", "driver.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
