//go:build e2e

package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ceph is a real Ceph with its CSI drivers, which make ceph-up has started in $CEPH_DIR.
type ceph struct {
	*box
	dir     string
	classes []string // files
}

// newCeph skips the test if there is no Ceph: make storage-test brings one up.
func newCeph(t *testing.T) *ceph {
	t.Helper()
	dir := os.Getenv("CEPH_DIR")
	if _, err := os.Stat(filepath.Join(dir, "cephfs.sock")); dir == "" || err != nil {
		t.Skip("no Ceph is up in $CEPH_DIR: make ceph-up")
	}
	examples, err := filepath.Abs("../../examples/ceph")
	if err != nil {
		t.Fatal(err)
	}
	return &ceph{box: newBox(t), dir: dir, classes: []string{filepath.Join(examples, "cephfs.yaml"),
		filepath.Join(examples, "rbd.yaml"), filepath.Join(dir, "secret.yaml")}}
}

// args are those of a run on both drivers.
func (c *ceph) args() []string {
	return append(slices.Clone(c.classes), "--csi-endpoint", filepath.Join(c.dir, "cephfs.sock"), "--csi-endpoint",
		"rbd.csi.ceph.com="+filepath.Join(c.dir, "rbd.sock"))
}

// ask returns what a command of Ceph prints.
func (c *ceph) ask(command ...string) string {
	c.Helper()
	cmd := exec.Command("nsenter", append([]string{"--net=" + filepath.Join(c.dir, "netns")}, command...)...)
	cmd.Env = append(os.Environ(), "CEPH_CONF="+filepath.Join(c.dir, "ceph.conf"))
	out, err := cmd.Output()
	if err != nil {
		c.Fatalf("%v: %v", command, err)
	}
	return strings.TrimSpace(string(out))
}

// emptied checks that Ceph has no volume and no snapshot of the run any more. An image leaves the trash later.
func (c *ceph) emptied() {
	c.Helper()
	var left []string
	if !poll(90*time.Second, func() bool {
		left = regexp.MustCompile(`csi-(?:vol|snap)-[-0-9a-f]+`).FindAllString(c.ask("ceph", "fs", "subvolume", "ls", "cfs",
			"csi")+c.ask("rbd", "ls", "rbd.r3")+c.ask("rbd", "trash", "ls", "rbd.r3"), -1)
		return len(left) == 0
	}) {
		c.Errorf("Ceph still has %v", left)
	}
	c.clean()
}

// onCeph has every kind of op on CephFS or RBD, beside a workload.
func onCeph(class string) string {
	return head + `spec:
  runtime: 15s
  gracePeriod: 90s
  actions:
    - {name: w, createObjSpec: {workload: idle, vars: {storageClass: ` + class + `, volumeSize: 64Mi}}}
    - {name: v, createObjSpec: {count: 2, volume: {storageClass: ` + class + `, size: 64Mi, attach: true}}}
    - {name: snap, rateName: often, snapshotSpec: {actionName: v, select: roundRobin}}
    - {name: back, rateName: rarely, restoreSpec: {actionName: snap, attach: true}}
    - {name: copy, rateName: rarely, cloneSpec: {actionName: v}}
    - {name: grow, rateName: once, resizeSpec: {actionName: v, increaseBy: 64Mi, select: newest}}
    - {name: gone, rateName: late, deleteSpec: {actionName: back, select: oldest}}
  rates:
    - {name: often, constantRateSpec: {interval: 3s}}
    - {name: rarely, startAfter: 1s, limit: 2, constantRateSpec: {interval: 5s}}
    - {name: once, startAfter: 4s, limit: 1, constantRateSpec: {interval: 1s}}
    - {name: late, startAfter: 10s, limit: 1, constantRateSpec: {interval: 1s}}
`
}

// TestCephRun runs every kind of op on a real CephFS and RBD with secrets, and checks the ops against the driver's own
// log, that nothing is left, and that the bundle has no secret. Copies of CephFS are ABORTED until they are done.
func TestCephRun(t *testing.T) {
	for class, log := range map[string]string{"cephfs-r3": "cephfs.jsonl", "rbd-r3": "rbd.jsonl"} {
		t.Run(class, func(t *testing.T) {
			c := newCeph(t)
			before := len(callsOf(t, filepath.Join(c.dir, "truth", log)))
			r := c.bench(onCeph(class), c.args()...)
			_, ops := c.readable(c.bundle())
			done, repeated := map[string]int{}, 0
			for _, o := range ops {
				switch {
				case o.Outcome == "ok":
					done[o.Kind]++
				case o.Outcome == "error" && !(o.Kind == "resize" && strings.Contains(o.Message, "CAP_SYS_RESOURCE")):
					t.Errorf("op %d, %s: %s: %s", o.ID, o.Kind, o.Code, o.Message)
				}
				if o.Attempts > 1 && (o.Kind == "restore" || o.Kind == "clone") {
					repeated++
				}
			}
			for _, kind := range []string{"create", "snapshot", "restore", "clone"} {
				if done[kind] == 0 {
					t.Errorf("no %s succeeded: %v\n%v", kind, done, r)
				}
			}
			if class == "cephfs-r3" && repeated == 0 {
				t.Error("no copy of CephFS was repeated")
			}
			c.agrees(ops, callsOf(t, filepath.Join(c.dir, "truth", log))[before:], time.Now())
			c.withoutSecrets()
			c.emptied()
		})
	}
}

// withoutSecrets checks that no file of the bundle has the key of the Secrets.
func (c *ceph) withoutSecrets() {
	c.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, "secret.yaml"))
	if err != nil {
		c.Fatal(err)
	}
	keys := regexp.MustCompile(`(?:userKey|adminKey): "?([^"\s]+)`).FindAllStringSubmatch(string(text), -1)
	if len(keys) == 0 {
		c.Fatal("the Secret has no key")
	}
	if err := filepath.WalkDir(c.bundle(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, key := range keys {
			if strings.Contains(string(content), key[1]) {
				c.Errorf("%s has the key", path)
			}
		}
		return err
	}); err != nil {
		c.Fatal(err)
	}
	var run struct{ Identity json.RawMessage }
	b, err := os.ReadFile(filepath.Join(c.bundle(), "run.json"))
	if err == nil {
		err = json.Unmarshal(b, &run)
	}
	if err != nil || strings.Contains(string(b), "secret.yaml\"") {
		c.Errorf("run.json names the file of the Secret: %v", err)
	}
}

// TestCephKilled ends runs on a real Ceph at random moments: by kill -9 with a clean-up after it, and by Ctrl-C. Nothing
// is left. CNSBENCH_KILLS is how often.
func TestCephKilled(t *testing.T) {
	seed := killSeed(t)
	for i := range killsOr(t, 2) {
		class := []string{"cephfs-r3", "rbd-r3"}[i%2]
		t.Run(class, func(t *testing.T) {
			c := newCeph(t)
			r := chance(seed, t.Name())
			l := c.startRun(onCeph(class), c.args()...)
			c.wait(within(r, 20*time.Second))
			if r.IntN(2) == 0 {
				_ = l.cmd.Process.Signal(syscall.SIGINT)
				l.wait()
			} else {
				l.kill()
			}
			if _, err := os.Stat(c.in("bundle", "run.json")); err == nil {
				c.run("cleanup", c.bundle()).wants(t, 0)
			}
			c.emptied()
		})
	}
}
