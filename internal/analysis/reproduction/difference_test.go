package reproduction

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/machine"
)

// environment is that of a machine with one disk, with the description of a cluster.
func environment() bundle.Environment {
	var engine map[string]any
	text := `{"server": "https://api:6443", "node": "n1",
		"storageClasses": {"fast": {"provisioner": "driver.example.io", "metadata": {"uid": "u1", "resourceVersion": "5"},
			"parameters": {"csi.storage.k8s.io/fstype": "xfs"}}},
		"drivers": [{"name": "loopfile", "provisioner": "loopfile.csi.cnsbench.dev", "endpoint": "/tmp/cnsbench-1/l.sock",
			"baseDir": "/s/1/loopfile", "version": "v1"}],
		"driverPods": {"storage/ctrl": {"csi-attacher": {"image": "registry/csi-attacher:v4", "imageID": "sha256:aa",
			"flags": {"kube-api-qps": "5"}}}},
		"limits": {"storage/ctrl-7d9f-abc/csi-attacher": {"flags": {"kube-api-qps": "5"}}},
		"nodes": [{"name": "n1", "kernel": "6.1.0", "conditions": {"Ready": "True"}}],
		"notReadable": {"featureGates": "forbidden"}}`
	if err := json.Unmarshal([]byte(text), &engine); err != nil {
		panic(err)
	}
	return bundle.Environment{Format: bundle.EnvironmentFormat, Hostname: "bench-1", Engine: engine,
		Kernel:           bundle.Kernel{Release: "6.1.0"},
		KernelParameters: []string{"ro", "mitigations=auto"},
		Sysctls:          map[string]string{"vm.dirty_ratio": "20"},
		Memory:           bundle.Memory{Total: 8 << 30, Available: 5 << 30},
		Programs:         map[string]machine.Program{"fio": {Path: "/usr/bin/fio", SHA256: "aa"}, "/bin/sh": {Path: "/bin/dash", SHA256: "bb"}},
		Devices: []bundle.BlockDevice{{Name: "sda", Device: "8:0", Scheduler: "none", On: nil},
			{Name: "sdb", Device: "8:16", Scheduler: "none"}, {Name: "loop3", Device: "7:3", Bytes: 1}},
		Filesystems: []bundle.Filesystem{
			{Role: bundle.BundleRole, Path: "/out/1", Mount: "/", Type: "ext4", Source: "/dev/sda1", Device: "8:1"},
			{Role: bundle.StorageRole, Path: "/s", Mount: "/s", Type: "xfs", Source: "/dev/sdb", Device: "8:16"}},
	}
}

// TestOneFact changes one recorded fact at a time: exactly this one is named.
func TestOneFact(t *testing.T) {
	at := func(e *bundle.Environment, path ...string) map[string]any {
		m := e.Engine
		for _, p := range path {
			m = m[p].(map[string]any)
		}
		return m
	}
	for _, tt := range []struct {
		name   string
		change func(e *bundle.Environment)
		want   []Difference
	}{
		{"nothing", func(*bundle.Environment) {}, nil},
		{"what differs between any two runs", func(e *bundle.Environment) {
			e.CollectedAt, e.Load, e.Memory.Available = time.Unix(7, 0), [3]float64{1, 2, 3}, 1<<30
			e.Filesystems[0].Path, e.Filesystems[1].Free, e.Filesystems[1].Device = "/out/2", 9, "8:16"
			e.Cgroup.Path, e.ClockSync = "/user.slice/session-9.scope", &bundle.ClockSync{OffsetNanos: 5}
			e.Warnings = []string{"x"}
			e.Devices[2] = bundle.BlockDevice{Name: "loop9", Device: "7:9", Bytes: 2}
			e.Programs["fio"] = machine.Program{Path: "/elsewhere/fio", SHA256: "aa"}
			at(e, "storageClasses", "fast")["metadata"] = map[string]any{"uid": "u2", "resourceVersion": "6"}
			driver := e.Engine["drivers"].([]any)[0].(map[string]any)
			driver["endpoint"], driver["baseDir"] = "/tmp/cnsbench-2/l.sock", "/s/2/loopfile"
			e.Engine["limits"] = map[string]any{"storage/ctrl-7d9f-xyz/csi-attacher": map[string]any{}}
		}, nil},
		{"a class that the run did not use", func(e *bundle.Environment) {
			at(e, "storageClasses")["faster"] = map[string]any{"provisioner": "other.example.io"}
		}, []Difference{{"engine.storageClasses.faster.provisioner", Place, nil, text("other.example.io")}}},
		{"a snapshot class of a driver that the run did not use", func(e *bundle.Environment) {
			e.Engine["volumeSnapshotClasses"] = map[string]any{"other": map[string]any{"driver": "other.example.io"}}
		}, []Difference{{"engine.volumeSnapshotClasses.other.driver", Place, nil, text("other.example.io")}}},
		{"a snapshot class of the run's driver", func(e *bundle.Environment) {
			e.Engine["volumeSnapshotClasses"] = map[string]any{"fast": map[string]any{"driver": "driver.example.io"}}
		}, []Difference{{"engine.volumeSnapshotClasses.fast.driver", Storage, nil, text("driver.example.io")}}},
		{"file system of a class",
			func(e *bundle.Environment) {
				at(e, "storageClasses", "fast", "parameters")["csi.storage.k8s.io/fstype"] = "ext4"
			},
			[]Difference{differs("engine.storageClasses.fast.parameters.csi.storage.k8s.io/fstype", Storage, "xfs", "ext4")}},
		{"rate limit of a sidecar",
			func(e *bundle.Environment) {
				at(e, "driverPods", "storage/ctrl", "csi-attacher", "flags")["kube-api-qps"] = "50"
			},
			[]Difference{differs("engine.driverPods.storage/ctrl.csi-attacher.flags.kube-api-qps", Storage, "5", "50")}},
		{"image of a sidecar",
			func(e *bundle.Environment) {
				at(e, "driverPods", "storage/ctrl", "csi-attacher")["imageID"] = "sha256:bb"
			},
			[]Difference{differs("engine.driverPods.storage/ctrl.csi-attacher.imageID", Storage, "sha256:aa", "sha256:bb")}},
		{"I/O scheduler of the storage's device",
			func(e *bundle.Environment) { e.Devices[1].Scheduler = "mq-deadline" },
			[]Difference{differs("blockDevices[storage].scheduler", Storage, "none", "mq-deadline")}},
		{"name of the storage's device", func(e *bundle.Environment) {
			e.Devices[1].Name, e.Devices[1].Device = "sdc", "8:32"
			e.Filesystems[1].Source, e.Filesystems[1].Device = "/dev/sdc", "8:32"
		}, []Difference{differs("blockDevices[storage].name", Place, "sdb", "sdc"),
			differs("filesystems[storage].source", Place, "/dev/sdb", "/dev/sdc")}},
		{"kernel", func(e *bundle.Environment) { e.Kernel.Release = "6.2.0" },
			[]Difference{differs("kernel.release", Machine, "6.1.0", "6.2.0")}},
		{"kernel parameter", func(e *bundle.Environment) { e.KernelParameters = []string{"mitigations=off", "ro"} },
			[]Difference{differs("kernelParameters.mitigations", Machine, "auto", "off")}},
		{"sysctl", func(e *bundle.Environment) { e.Sysctls["vm.dirty_ratio"] = "40" },
			[]Difference{differs("sysctls.vm.dirty_ratio", Machine, "20", "40")}},
		{"kernel of a node",
			func(e *bundle.Environment) { e.Engine["nodes"].([]any)[0].(map[string]any)["kernel"] = "6.2.0" },
			[]Difference{differs("engine.nodes[n1].kernel", Machine, "6.1.0", "6.2.0")}},
		{"program", func(e *bundle.Environment) { e.Programs["fio"] = machine.Program{Path: "/usr/bin/fio", SHA256: "cc"} },
			[]Difference{differs("programs.fio.sha256", Program, "aa", "cc")}},
		{"a device more",
			func(e *bundle.Environment) {
				e.Devices = append(e.Devices, bundle.BlockDevice{Name: "sdx", Scheduler: "bfq"})
			},
			[]Difference{{"blockDevices[sdx].bytes", Place, nil, text("0")},
				{"blockDevices[sdx].logicalBlock", Place, nil, text("0")}, {"blockDevices[sdx].name", Place, nil, text("sdx")},
				{"blockDevices[sdx].physicalBlock", Place, nil, text("0")}, {"blockDevices[sdx].queueDepth", Place, nil, text("0")},
				{"blockDevices[sdx].rotational", Place, nil, text("false")},
				{"blockDevices[sdx].scheduler", Place, nil, text("bfq")}}},
		{"the most likely cause first", func(e *bundle.Environment) {
			e.Hostname, e.Kernel.Release, e.Filesystems[1].Type = "bench-2", "6.2.0", "ext4"
		}, []Difference{differs("filesystems[storage].type", Storage, "xfs", "ext4"),
			differs("kernel.release", Machine, "6.1.0", "6.2.0"), differs("hostname", Place, "bench-1", "bench-2")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			changed := environment()
			tt.change(&changed)
			c := CompareFacts(facts(t, environment()), facts(t, changed), [2]int{2, 2})
			if diff := cmp.Diff(slices.Clip(append([]Difference{}, tt.want...)), c.Differences); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if c.Compared < 20 || len(c.OneSided) > 0 {
				t.Errorf("%d facts compared, one-sided: %q", c.Compared, c.OneSided)
			}
		})
	}
}

// TestRequest changes what was asked for.
func TestRequest(t *testing.T) {
	base := func() bundle.Run {
		return bundle.Run{Engine: "local", Seed: 7, Versions: map[string]string{"cnsbench": "v1", "bundleFormat": "1"},
			Spec: json.RawMessage(`{"kind": "Benchmark", "spec": {"seed": 7, "runtime": "5s", "actions": [{"name": "a"}]}}`),
			Plan: json.RawMessage(`{"vars": {"a": {"bs": "4k"}}, "inject": "x", "args": ["--set", "spec.seed=7"]}`),
			Source: bundle.Source{Text: "# a comment", Traces: []bundle.Trace{{Rate: "r", SHA256: "aa"}},
				Workloads: []bundle.Workload{{Name: "fio", SHA256: "bb"}}}}
	}
	for _, tt := range []struct {
		name   string
		change func(r *bundle.Run)
		want   []Difference
	}{
		{"comments, a seed that was drawn, and flags", func(r *bundle.Run) {
			r.Source.Text, r.ID = "", "2"
			r.Spec = json.RawMessage(`{"kind": "Benchmark", "spec": {"runtime": "5s", "actions": [{"name": "a"}]}}`)
			r.Plan = json.RawMessage(`{"vars": {"a": {"bs": "4k"}}, "inject": "x"}`)
		}, []Difference{}},
		{"seed", func(r *bundle.Run) { r.Seed = 8 }, []Difference{differs("seed", Request, "7", "8")}},
		{"injected limit", func(r *bundle.Run) { r.Plan = json.RawMessage(`{"vars": {"a": {"bs": "4k"}}, "inject": "y"}`) },
			[]Difference{differs("inject", Request, "x", "y")}},
		{"variable", func(r *bundle.Run) { r.Plan = json.RawMessage(`{"vars": {"a": {"bs": "8k"}}, "inject": "x"}`) },
			[]Difference{differs("variables.a.bs", Request, "4k", "8k")}},
		{"trace", func(r *bundle.Run) { r.Source.Traces[0].SHA256 = "cc" },
			[]Difference{differs("trace[r].sha256", Request, "aa", "cc")}},
		{"workload of the library", func(r *bundle.Run) { r.Source.Workloads[0].SHA256 = "cc" },
			[]Difference{differs("workload[fio].sha256", Program, "bb", "cc")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			then, now := base(), base()
			tt.change(&now)
			a, err := OfRun(&then)
			if err != nil {
				t.Fatal(err)
			}
			b, err := OfRun(&now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, CompareFacts(a, b, [2]int{2, 2}).Differences); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestOlderFormat checks that facts that an earlier version did not record are not differences.
func TestOlderFormat(t *testing.T) {
	old := environment()
	old.Format, old.Sysctls, old.Programs = 0, nil, nil
	old.Filesystems[0].Role, old.Filesystems[1].Role = "", ""
	now := environment()
	now.Kernel.Release = "6.2.0"
	c := CompareFacts(facts(t, old), facts(t, now), [2]int{0, 2})
	if diff := cmp.Diff([]Difference{differs("kernel.release", Machine, "6.1.0", "6.2.0")}, c.Differences); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want := []string{"programs./bin/sh.sha256", "programs.fio.sha256", "sysctls.vm.dirty_ratio"}
	for _, name := range want {
		if !slices.Contains(c.OneSided, name) {
			t.Errorf("%s is not among %q", name, c.OneSided)
		}
	}
}

// TestUnread checks that a part of the cluster that one run had no right to read is no difference.
func TestUnread(t *testing.T) {
	a := Facts{"engine.driverPods.x/y.c.image": "v1", "engine.nodes[n].cpu": "4",
		"engine.providerObjects.pools.example.io/p.spec.n": "1"}
	b := Facts{"engine.notReadable.driverPods": "forbidden", "engine.notReadable.pools.example.io": "forbidden"}
	for _, sides := range [][2]Facts{{a, b}, {b, a}} {
		c := CompareFacts(sides[0], sides[1], [2]int{2, 2})
		if len(c.Differences) != 1 || c.Differences[0].Fact != "engine.nodes[n].cpu" || len(c.OneSided) != 2 {
			t.Errorf("%+v", c)
		}
	}
}

// TestRunnerPod checks that the names of two runners' pods are no difference, but a runner elsewhere is.
func TestRunnerPod(t *testing.T) {
	on := func(host string) Facts { return facts(t, bundle.Environment{Hostname: host}) }
	a, b, elsewhere := on("cnsb-d5a618ec-runner"), on("cnsb-dbfede43-runner"), on("cnsb-d5a618ec-other")
	if c := CompareFacts(a, b, [2]int{2, 2}); len(c.Differences) != 0 {
		t.Errorf("two pods: %+v", c.Differences)
	}
	if c := CompareFacts(a, elsewhere, [2]int{2, 2}); len(c.Differences) != 1 || c.Differences[0].Fact != "hostname" {
		t.Errorf("elsewhere: %+v", c.Differences)
	}
}

func facts(t *testing.T, e bundle.Environment) Facts {
	t.Helper()
	f, err := OfEnvironment(e)
	if err != nil {
		t.Fatal(err)
	}
	f["classDrivers.fast"] = "driver.example.io" // as OfRun does
	return f
}

func differs(fact string, g Group, then, now string) Difference {
	return Difference{fact, g, &then, &now}
}

func text(s string) *string { return &s }
