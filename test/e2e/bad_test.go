package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cnsbench/cnsbench/test/awkwarddriver"
)

const head = "apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: bad}\n"

// class returns a StorageClass "sut" whose parameters set options of CNSBench's own CSI driver.
func class(driver string, options ...string) string {
	text := "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: sut}\nprovisioner: " + driver +
		".csi.cnsbench.dev\nparameters:\n"
	for _, o := range options {
		text += "  driver.cnsbench.dev/" + o + "\n"
	}
	return text
}

// workload returns a library entry "mine" with one container that uses a volume of class sut.
func workload(command string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: ConfigMap
metadata: {name: mine, labels: {type: workload}}
data:
  claim.yaml: |
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      storageClassName: sut
      resources: {requests: {storage: 64Mi}}
  pod.yaml: |
    apiVersion: v1
    kind: Pod
    metadata: {name: mine, annotations: {role: workload}}
    spec:
      containers:
        - {name: main, command: %s, volumeMounts: [{name: data, mountPath: /data}]}
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`, command)
}

const (
	runsMine = head + "spec: {actions: [{name: w, createObjSpec: {workload: mine}}]}\n"
	// atRate creates volumes at a rate for one second; atStart creates them when the run starts.
	atRate = head + `spec:
  runtime: 1s
  gracePeriod: 2s
  actions: [{name: v, timeout: 1m, rateName: r, createObjSpec: {volume: {storageClass: sut, size: 1Gi}}}]
  rates: [{name: r, limit: 5, constantRateSpec: {interval: 20ms}}]
`
	atStart = head + `spec:
  actions: [{name: v, timeout: 1m, createObjSpec: {count: 3, volume: {storageClass: sut, size: 1Gi}}}]
`
)

// timesOut is a Benchmark whose ops get no answer: they time out soon. All others have time on a busy machine.
func timesOut(file string) string { return strings.Replace(file, "timeout: 1m", "timeout: 500ms", 1) }

// spec returns a Benchmark with the given spec.
func spec(text string) string { return head + "spec: " + text + "\n" }

// badCase is one invalid or failing input, with the expected exit code, messages and bundle state.
type badCase struct {
	name string
	file string // the Benchmark; if empty, setup returns the command line
	args []string
	// setup prepares the box. If it returns a command line, that replaces the default one.
	setup func(b *box) []string
	// kills is the backend whose driver is killed once the run has reached the state running.
	kills string
	root  bool
	code  int
	says  []string // texts in the output: the place of the problem and the remedy
	// state is the expected state of the bundle. If it is empty, there must be no bundle.
	state string
	want  map[string]int // expected outcomes of the ops of action v
}

var badFiles = []badCase{
	{name: "malformed YAML", file: head + "spec:\n  actions: [\n", code: 1, says: []string{"bench.yaml:5"}},
	{name: "wrong indentation", file: head + "spec:\n  actions:\n   - name: x\n  rates:\n bad: y\n", code: 1,
		says: []string{"bench.yaml:8", "indentation"}},
	{name: "empty file", file: "", code: 1, says: []string{"bench.yaml", "examples/quickstart.yaml"}},
	{name: "no such file", setup: func(b *box) []string { return []string{"run", b.in("none.yaml")} }, code: 1,
		says: []string{"none.yaml", "no such file"}},
	{name: "a directory", setup: func(b *box) []string { return []string{"run", b.dir} }, code: 1,
		says: []string{"is a directory"}},
	{name: "unknown field", file: spec("{runtme: 1s, actions: [{name: v, createObjSpec: {volume: {}}}]}"), code: 1,
		says: []string{"bench.yaml:4:8", "spec.runtme", `"runtime"`}},
	{name: "unknown workload", file: spec("{actions: [{name: v, createObjSpec: {workload: foi}}]}"), code: 1,
		says: []string{"bench.yaml:4", "spec.actions[0].createObjSpec.workload", `"foi"`, `"fio"`}},
	{name: "unknown variable", file: spec("{actions: [{name: v, createObjSpec: {workload: fio, vars: {storageClass: hostdir, iodeph: 4}}}]}"), code: 1, says: []string{"bench.yaml:4", "iodeph", `"iodepth"`}},
	{name: "unknown variables without a value", file: spec("{actions: [{name: f, createObjSpec: {workload: fio, " +
		"vars: {storageClass: hostdir, filename: , bs: }, matrix: {iodeph: , rw: [read, write]}}}]}"), code: 1,
		says: []string{"2 problems", "bench.yaml:4:89: spec.actions[0].createObjSpec.vars.filename",
			"no variable \"filename\"",
			"spec.actions[0].createObjSpec.matrix.iodeph", `"iodepth"`}},
	{name: "nothing as a factor's value", setup: func(b *box) []string {
		return []string{"study", "run", "--dry-run",
			b.write("study.yaml", strings.Replace(head, "Benchmark", "Study", 1)+
				"spec: {factors: {vars.storageClass: [null, hostdir]}, "+
				"benchmark: {actions: [{name: f, createObjSpec: {workload: fio}}]}}\n")}
	}, code: 1, says: []string{"study.yaml:4:38: spec.factors.vars.storageClass[0]: the value is missing",
		`written "null"`}},
	{name: "misspelt variables", file: spec("{actions: [{name: f, createObjSpec: {workload: fio, vars: " +
		"{storageClass: hostdir, rw: randwirte, bs: 4q, iodepth: -1, fillPercent: 300}}}]}"),
		args: []string{"--set", "f.runtime=3s"}, code: 1,
		says: []string{"5 problems", `bench.yaml:4:93: spec.actions[0].createObjSpec.vars.rw`,
			`did you mean "randwrite"?`, `"4q"`, "such as 4k", `"-1" is less than 1`, `"300" is more than 100`,
			"--set f.runtime=3s", "write 3: the unit is seconds"}},
	{name: "variable not given", file: spec("{actions: [{name: v, createObjSpec: {workload: fio}}]}"), code: 1,
		says: []string{"bench.yaml:4", "storageClass"}},
	{name: "unknown rate", file: spec("{actions: [{name: v, rateName: minut, createObjSpec: {volume: {storageClass: hostdir}}}], rates: [{name: minute, constantRateSpec: {interval: 60s}}]}"), code: 1, says: []string{"spec.actions[0].rateName", `"minut"`, `"minute"`}},
	{name: "unknown target", file: spec("{actions: [{name: vol, createObjSpec: {volume: {storageClass: hostdir}}}, {name: s, snapshotSpec: {actionName: vool}}]}"), code: 1, says: []string{"spec.actions[1].snapshotSpec.actionName", `"vool"`, `"vol"`}},
	{name: "unknown storage class", file: spec("{actions: [{name: v, createObjSpec: {volume: {storageClass: loopfle}}}]}"), code: 1, says: []string{"storageClass", `"loopfle"`, `"loopfile"`}},
	{name: "unknown name in an SLO", file: spec("{actions: [{name: v, createObjSpec: {volume: {storageClass: hostdir}}}], slos: [{name: o, expr: 'p99(w.ready) < duration(\"1s\")'}]}"), code: 1, says: []string{"spec.slos[0].expr", "w"}},
	{name: "duplicate actions", file: spec("{actions: [{name: v, createObjSpec: {volume: {storageClass: hostdir}}}, {name: v, createObjSpec: {volume: {storageClass: hostdir}}}]}"), code: 1, says: []string{"spec.actions[1]", `"v"`}},
	{name: "duplicate rates", file: spec("{actions: [{name: v, rateName: r, createObjSpec: {volume: {storageClass: hostdir}}}], rates: [{name: r, constantRateSpec: {interval: 1s}}, {name: r, constantRateSpec: {interval: 2s}}]}"), code: 1, says: []string{"spec.rates[1]", `"r"`}},
	{name: "two Benchmarks", file: spec("{actions: [{name: v, createObjSpec: {volume: {storageClass: hostdir}}}]}") + "---\n" + spec("{actions: [{name: v, createObjSpec: {volume: {storageClass: hostdir}}}]}"), code: 1, says: []string{"bench.yaml:7:7", "second Benchmark"}},
	{name: "a rate without bounds", file: spec("{runtime: 1s, actions: [{name: v, rateName: r, createObjSpec: {volume: {storageClass: hostdir}}}], rates: [{name: r, poissonRateSpec: {perSecond: 1e15}}]}"), code: 1, says: []string{"spec.rates[0].poissonRateSpec.perSecond", "a million"}},
	{name: "a rate of zero", file: spec("{runtime: 1s, actions: [{name: v, rateName: r, createObjSpec: {volume: {storageClass: hostdir}}}], rates: [{name: r, constantRateSpec: {perSecond: 0}}]}"), code: 1, says: []string{"spec.rates[0].constantRateSpec.perSecond"}},
	{name: "a rate below zero", file: spec("{runtime: 1s, actions: [{name: v, rateName: r, createObjSpec: {volume: {storageClass: hostdir}}}], rates: [{name: r, poissonRateSpec: {perSecond: -3}}]}"), code: 1, says: []string{"spec.rates[0].poissonRateSpec.perSecond"}},
	{name: "an interval of nothing", file: spec("{runtime: 1s, actions: [{name: v, rateName: r, createObjSpec: {volume: {storageClass: hostdir}}}], rates: [{name: r, constantRateSpec: {interval: 1ns}}]}"), code: 1, says: []string{"spec.rates[0].constantRateSpec.interval"}},
	{name: "an absurd count", file: spec("{actions: [{name: v, createObjSpec: {count: 1000000000, volume: {storageClass: hostdir}}}]}"), code: 1, says: []string{"spec.actions[0].createObjSpec.count", "10000"}},
	{name: "a rate without a kind", file: spec("{actions: [{name: v, rateName: r, createObjSpec: {volume: {storageClass: hostdir}}}], rates: [{name: r}]}"), code: 1, says: []string{"spec.rates[0]"}},
	{name: "what an engine does not offer", file: spec("{actions: [{name: d, drainSpec: {nodeName: n}}]}"), code: 1,
		says: []string{"drainSpec", "not offered by engine local", "--engine kubernetes has it"}},
	{name: "endless", file: spec("{actions: [{name: v, rateName: r, createObjSpec: {volume: {storageClass: hostdir}}}], rates: [{name: r, constantRateSpec: {interval: 1s}}]}"), code: 1, says: []string{"runtime", "end"}},
	{name: "every problem at once", file: spec("{actions: [{name: v, rateName: nope, createObjSpec: {workload: foi}}, {name: s, snapshotSpec: {actionName: gone}}]}"), code: 1, says: []string{"nope", "foi", "gone", "3 problems"}},
	{name: "wrong --set", file: atStart + class("null"), args: []string{"--set", "spec.actions.w.timeout=1s"}, code: 1,
		says: []string{"--set", "w"}},
	{name: "engine kubernetes", file: atStart + class("null"),
		args: []string{"--engine", "kubernetes", "--kubeconfig",
			"/nowhere/kubeconfig"}, code: 1, says: []string{"read kubeconfig /nowhere/kubeconfig", "$KUBECONFIG"}},
	{name: "unknown engine", file: atStart + class("null"), args: []string{"--engine", "nomad"}, code: 1,
		says: []string{"--engine", `"nomad"`, "local", "kubernetes"}},
	{name: "unknown flag", file: atStart + class("null"), args: []string{"--no-such-flag"}, code: 1,
		says: []string{"--no-such-flag"}},
	{name: "unknown output", file: atStart + class("null"), args: []string{"--output", "xml"}, code: 1,
		says: []string{"--output", "xml", "json"}},
	{name: "unknown command", setup: func(*box) []string { return []string{"rnu"} }, code: 1,
		says: []string{"rnu", "run"}},
	{name: "no arguments to run", setup: func(*box) []string { return []string{"run"} }, code: 1,
		says: []string{"arg"}},
}

var badPlaces = []badCase{
	{name: "output directory is not empty", file: atStart + class("null"), code: 1,
		says: []string{"bundle", "not empty", "precious", "another directory"},
		setup: func(b *box) []string {
			if err := os.Mkdir(b.bundle(), 0o755); err != nil {
				b.Fatal(err)
			}
			b.write("bundle/precious", "data")
			return nil
		}},
	{name: "output directory below a file", file: atStart + class("null"), code: 1,
		says: []string{"file/bundle", "not a directory"},
		setup: func(b *box) []string {
			return []string{"run", b.write("x.yaml", atStart+class("null")), "--out", b.write("file", "") + "/bundle",
				"--storage-dir", b.in("storage")}
		}},
	{name: "output directory is not writable", root: true, code: 1,
		says: []string{"locked/bundle", "permission denied"},
		setup: func(b *box) []string {
			if err := os.Mkdir(b.in("locked"), 0o755); err != nil { // owned by root
				b.Fatal(err)
			}
			b.asNobody()
			return []string{"run", b.write("x.yaml", atStart+class("null")), "--out", b.in("locked", "bundle"),
				"--storage-dir", b.in("storage")}
		}},
	{name: "storage directory below a file", code: 1, says: []string{"not a directory", "--storage-dir"},
		setup: func(b *box) []string {
			return []string{"run", b.write("x.yaml", atStart+class("null")), "--out", b.bundle(), "--storage-dir",
				b.write("file", "") + "/storage"}
		}},
	{name: "scratch directory is absent", file: atStart + class("null"), code: 2, state: "failed",
		says: []string{"no such file", "TMPDIR"},
		setup: func(b *box) []string {
			if err := os.Remove(b.in("tmp")); err != nil {
				b.Fatal(err)
			}
			return nil
		}},
	{name: "disk full while recording", root: true, code: 2, state: "failed",
		says: []string{"small/bundle", "no space left"}, setup: func(b *box) []string { return fullDisk(b, "1m") }},
	{name: "no room for a bundle", root: true, code: 1, says: []string{"small/bundle", "no space left"},
		setup: func(b *box) []string { return fullDisk(b, "64k") }},
	{name: "driver's program is missing", root: true, code: 2,
		says: []string{"StorageClass loopfile", "mkfs.ext4",
			"apt-get install e2fsprogs"}, setup: func(b *box) []string { return without(b, "mkfs.ext4") }},
	{name: "workload's program is missing", root: true, code: 2,
		says: []string{"action fio", `"fio"`, "apt-get install fio"}, setup: func(b *box) []string {
			return without(b,
				"fio")
		}},
	{name: "scratch directory's path is too long", code: 2, state: "failed", says: []string{"TMPDIR", "107"},
		setup: func(b *box) []string {
			b.tmp = strings.Repeat("long", 30)
			return b.runArgs(b.write("x.yaml", atStart+class("null")))
		}},
	{name: "workload's command does not exist", file: runsMine + class("hostdir") + workload("[no-such-program]"),
		code: 2, says: []string{"main", `"no-such-program"`, "install"}},
}

// fullDisk returns the command line of a Benchmark with many ops. Its bundle is on a tmpfs of the
// given size, which fills up.
func fullDisk(b *box, size string) []string {
	small := b.in("small")
	if err := os.Mkdir(small, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size="+size); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	text := strings.NewReplacer("runtime: 1s", "runtime: 60s", "limit: 5, constantRateSpec: {interval: 20ms}",
		"poissonRateSpec: {perSecond: 2000}").Replace(atRate)
	return []string{"run", b.write("x.yaml", text+class("null")), "--out", b.in("small", "bundle"), "--storage-dir",
		b.in("storage")}
}

// without returns the command line that runs the quickstart on a host without the given program. It
// uses a separate mount namespace in which an overlay hides the program. Loop devices are unmounted there: its
// copies of the mounts would keep the devices of other tests busy.
func without(b *box, program string) []string {
	needProgram(b, "unshare", program)
	path, err := exec.LookPath(program)
	if err == nil {
		path, err = filepath.EvalSymlinks(filepath.Dir(path))
	}
	if err != nil {
		b.Fatal(err)
	}
	if err := os.Mkdir(b.in("overlay"), 0o755); err != nil {
		b.Fatal(err)
	}
	script := b.write("without.sh", fmt.Sprintf(`set -e
awk '$1 ~ "^/dev/loop" && $2 != "/" {print $2}' /proc/self/mounts | while read -r m; do umount -l "$m" || true; done
mount -t tmpfs tmpfs %[1]s
mkdir %[1]s/upper %[1]s/work
mount -t overlay overlay -o lowerdir=%[2]s,upperdir=%[1]s/upper,workdir=%[1]s/work %[2]s
rm -f %[2]s/%[3]s
exec "$@"
`, b.in("overlay"), path, program))
	return append([]string{"unshare", "-m", "/bin/sh", script, b.cnsbench()},
		b.runArgs(filepath.Join(module, "examples", "quickstart.yaml"))...)
}

var badDrivers = []badCase{
	{name: "absent", file: atStart + class("null"), args: []string{"--csi-endpoint", "/nowhere/csi.sock"}, code: 1,
		says: []string{"/nowhere/csi.sock", "--csi-endpoint"}},
	{name: "no server on the socket", code: 2, state: "failed", says: []string{"dead.sock", "refused"},
		setup: deadSocket},
	{name: "not one of ours", file: atStart + strings.Replace(class("null"), "null.csi.cnsbench.dev", "ebs.csi.aws.com",
		1), code: 1, says: []string{"bench.yaml:5", "ebs.csi.aws.com", "--csi-endpoint"}},
	{name: "no such backend", file: atStart + class("nul"), code: 1,
		says: []string{"bench.yaml:5", `"null.csi.cnsbench.dev"`}},
	{name: "wrong injection", file: atStart + class("null", `inject: "rpcs: {CreateVolume: {delay: soon}}"`), code: 2,
		state: "failed", says: []string{"did not start", "CreateVolume", "soon"}},
	{name: "hangs at the start", file: timesOut(atStart) + class("null",
		`inject: "rpcs: {CreateVolume: {hang: 100%}}"`), code: 2,
		state: "failed", says: []string{"CreateVolume", "v-"}, want: map[string]int{"timeout": 3}},
	{name: "hangs under a rate", file: timesOut(atRate) + class("null",
		`inject: "rpcs: {CreateVolume: {hang: 100%}}"`), code: 0,
		state: "complete", says: []string{"timeout", "failedOps"}, want: map[string]int{"timeout": 5}},
	{name: "dies in mid-run", file: slow + class("null", `inject: "rpcs: {CreateVolume: {delay: 1h}}"`), kills: "null",
		code: 2, state: "failed", says: diesInMidRun("null")},
	{name: "dies beside fio", file: busy("hostdir"), kills: "hostdir", code: 2, state: "failed",
		says: diesInMidRun("hostdir")},
	{name: "dies beside fio on file systems", root: true, file: busy("loopfile"), kills: "loopfile", code: 2,
		state: "failed", says: diesInMidRun("loopfile")},
	{name: "errors at the start", file: atStart + class("null", `inject: "rpcs: {CreateVolume: {error: 100% INTERNAL}}"`), code: 2, state: "failed", says: []string{"Internal", "CreateVolume"}, want: map[string]int{"error": 3}},
	{name: "errors under a rate", file: atRate + class("null", `inject: "rpcs: {CreateVolume: {error: 100% INTERNAL}}"`), code: 0, state: "complete", says: []string{"Internal"}, want: map[string]int{"error": 5}},
	{name: "makes smaller volumes", setup: awkward(atStart, "-lie=CreateVolume=capacity"),
		code: 2, state: "failed", want: map[string]int{"error": 3}, says: []string{"DriverFault",
			"driver awkward.csi.example.com is at fault", "536870912 bytes of the 1073741824 requested"}},
	{name: "publishes nothing", setup: awkward(runsMine+workload(`[dd, if=/dev/zero, of=/data/f, bs=1M, count=1]`),
		"-lie=NodePublishVolume=early"), code: 2, state: "failed",
		says: []string{"driver awkward.csi.example.com is at fault", "there is nothing at"}},
	{name: "cannot be trusted", file: atRate + class("null", `inject: "rpcs: {CreateVolume: {error: 100% INTERNAL}}"`),
		args: []string{"--strict"}, code: 4, state: "complete", says: []string{"invalid",
			"failedOps"}, want: map[string]int{"error": 5}},
	{name: "delays of nothing known", file: atRate + class("null", `inject: "rpcs: {NoSuchCall: {delay: 1s}}"`),
		code: 2, state: "failed", says: []string{"did not start", "NoSuchCall"}},
	{name: "capacity exhausted at the start", file: atStart + class("null", `capacity: 2Gi`), code: 2, state: "failed",
		says: []string{"v-", "ResourceExhausted", "0 available"}, want: map[string]int{"ok": 2, "error": 1}},
	{name: "capacity exhausted under a rate", file: atRate + class("null", `capacity: 2Gi`), code: 0, state: "complete",
		says: []string{"ResourceExhausted"}, want: map[string]int{"ok": 2, "error": 3}},
	{name: "objective missed", file: atRate + "  slos: [{name: fast, expr: 'p50(v.ready) < duration(\"1ns\")'}]\n" + class("null"), code: 3, state: "complete", says: []string{"fast"}, want: map[string]int{"ok": 5}},
	{name: "objective on too few values", file: atRate +
		"  slos: [{name: fast, expr: 'p99(v.ready) < duration(\"1h\")'}]\n" + class("null"),
		code: 3, state: "complete", says: []string{"weak", "fewValues"}, want: map[string]int{"ok": 5}},
	{name: "objective on few values, taken for what they are", file: atRate +
		"  slos: [{name: fast, fewValues: true, expr: 'p99(v.ready) < duration(\"1h\")'}]\n" + class("null"),
		code: 0, state: "complete", says: []string{"pass    fast"}, want: map[string]int{"ok": 5}},
	{name: "objective missed on few values, taken for what they are", file: atRate +
		"  slos: [{name: fast, fewValues: true, expr: 'p99(v.ready) < duration(\"1ns\")'}]\n" + class("null"),
		code: 3, state: "complete", says: []string{"FAIL    fast"}, want: map[string]int{"ok": 5}},
	{name: "objectives without data", file: strings.Replace(atRate, "actions: [", "actions: ["+
		"{name: never, startAfter: 1h, createObjSpec: {volume: {storageClass: sut, size: 1Gi}}}, ", 1) +
		"  slos: [{name: fast, expr: 'p50(v.published) < duration(\"1h\")'}, " +
		"{name: none, expr: 'errors(never) == 0'}]\n" + class("null"),
		code: 3, state: "complete",
		says: []string{"no data fast", "no data none", "never: no op: it starts 1h0m0s after the"},
		want: map[string]int{"ok": 5}},
}

// awkward returns a setup that runs a file on an awkward driver.
func awkward(file, flag string) func(b *box) []string {
	class := "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: sut}\nprovisioner: " +
		awkwarddriver.Name + "\n"
	return func(b *box) []string {
		d := awkwarddriver.Serve(b, awkwarddriver.Config{}, flag)
		return b.runArgs(b.write("bench.yaml", file+class), "--csi-endpoint", d.Socket)
	}
}

func diesInMidRun(backend string) []string {
	return []string{"CSI driver " + backend, "ended during the run", "killed"}
}

func deadSocket(b *box) []string {
	l, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = syscall.Close(l) })
	if err := syscall.Bind(l, &syscall.SockaddrUnix{Name: b.in("dead.sock")}); err != nil { // without listening
		b.Fatal(err)
	}
	return b.runArgs(b.write("x.yaml", atStart+class("null")), "--csi-endpoint", b.in("dead.sock"))
}

var badWorkloads = []badCase{
	{name: "exits with 3", file: runsMine + class("hostdir") + workload(`[sh, -c, "echo it is broken >&2; exit 3"]`),
		code: 2, state: "failed", says: []string{"w-0", "container main exited with 3", "it is broken"}},
	{name: "killed by a signal", file: runsMine + class("hostdir") + workload(`[sh, -c, "kill -9 $$$$"]`), code: 2,
		state: "failed", says: []string{"w-0", "container main was killed by SIGKILL"}},
	{name: "segmentation fault", file: runsMine + class("hostdir") + workload(`[sh, -c, "kill -s SEGV $$$$"]`), code: 2,
		state: "failed", says: []string{"w-0", "container main was killed by SIGSEGV"}},
	{name: "no space on the volume", root: true, file: runsMine + class("loopfile") + workload(`[dd, if=/dev/zero, of=/data/file, bs=1M, count=100]`), code: 2, state: "failed", says: []string{"w-0", "No space left on device", "main"}},
	{name: "does no I/O", file: spec("{actions: [{name: f, createObjSpec: {workload: fio, vars: " +
		`{storageClass: hostdir, volumeSize: 64Mi, fillPercent: 3, extra: "runtime=3ss\ncreate_only=1"}}}]}`), code: 0, state: "complete",
		says: []string{"The figures of f are invalid: f-0: no I/O was done.", "fioDiffers", "runtime=3ss"}},
	{name: "is not what was asked for", file: spec("{actions: [{name: f, createObjSpec: {workload: fio, vars: " +
		"{storageClass: hostdir, volumeSize: 64Mi, fillPercent: 3, runtime: 1, rateIops: 50, direct: 0, extra: bs=4q}}}]}"),
		code: 0, state: "complete", says: []string{"fioDiffers", "bs=4q is not a size", "of 4 B"}},
	{name: "leaves children", file: runsMine + class("hostdir") + workload(`[sh, -c, "sleep 1000 & setsid sleep 1000 & exit 0"]`), code: 0, state: "complete"},
	{name: "ignores SIGTERM", file: head + "spec: {runtime: 1s, gracePeriod: 1s, actions: [{name: w, createObjSpec: {workload: mine}}]}\n" + class("hostdir") + workload(`[sh, -c, "trap '' TERM; while true; do sleep 1; done"]`), code: 0, state: "complete"},
}

// TestBadInput checks that for each invalid or failing input the message names the place and the
// remedy, the exit code is correct, no leftovers remain and the recorded data is readable.
func TestBadInput(t *testing.T) {
	t.Parallel()
	for group, cases := range map[string][]badCase{"file": badFiles, "place": badPlaces, "driver": badDrivers,
		"workload": badWorkloads} {
		for _, c := range cases {
			t.Run(group+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				c.check(t)
			})
		}
	}
}

func (c *badCase) check(t *testing.T) {
	if c.root {
		needRoot(t)
	}
	if strings.Contains(c.file, "workload: fio") {
		needProgram(t, "fio")
	}
	b := newBox(t)
	var args []string
	if c.file != "" || c.setup == nil {
		args = b.runArgs(b.write("bench.yaml", c.file), c.args...)
	}
	if c.setup != nil {
		if own := c.setup(b); own != nil {
			args = own
		}
	}
	r := b.perform(args, c.kills).wants(t, c.code)
	for _, want := range c.says {
		if !strings.Contains(r.stdout+r.stderr, want) {
			t.Errorf("does not say %q\n%v", want, r)
		}
	}
	if strings.Contains(r.stderr, "goroutine ") {
		t.Errorf("it panicked\n%v", r)
	}
	bundle := b.bundleOf(args)
	if c.state == "" {
		if left, _ := filepath.Glob(filepath.Join(bundle, "[^p]*")); len(left) > 0 { // all but the file precious
			t.Errorf("it left %v\n%v", left, r)
		}
	} else {
		s, ops := b.readable(bundle)
		if s.State != c.state {
			t.Errorf("state %q (%s), want %q\n%v", s.State, s.Reason, c.state, r)
		}
		if got := outcomes(ops, "v"); c.want != nil && fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("outcomes %v, want %v\n%v", got, c.want, r)
		}
		b.run("cleanup", bundle).wants(t, 0)
	}
	b.clean(b.in("small"))
}

// perform runs cnsbench with args. If args start with another program, it runs that. If kills names
// a backend, perform kills its driver once the run has reached the state running.
func (b *box) perform(args []string, kills string) result {
	b.Helper()
	switch {
	case args[0] == "unshare":
		ctx := b.Context()
		return b.finish(ctx, b.command(ctx, args[0], args[1:]...))
	case kills == "":
		return b.run(args...)
	}
	l := b.start(b.cnsbench(), args...)
	l.reaches("running")
	if err := syscall.Kill(l.child("csi driver", "--backend "+kills), syscall.SIGKILL); err != nil {
		b.Fatal(err)
	}
	return l.wait()
}

// bundleOf returns the bundle directory given in args, or the default one.
func (b *box) bundleOf(args []string) string {
	for i, a := range args {
		if a == "--out" {
			return args[i+1]
		}
	}
	return b.bundle()
}
