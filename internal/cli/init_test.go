package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/test/apitest"
)

// TestInit checks that init writes a valid Benchmark with what its flags say, once.
func TestInit(t *testing.T) {
	t.Chdir(t.TempDir())
	code, out, errs := call("init", "--storage-class", "hostdir", "--runtime", "7s", "--count", "2")
	if code != exitOK || errs != "" || !strings.Contains(out, "next: cnsbench run benchmark.yaml") {
		t.Fatalf("exit %d, %q, %q", code, out, errs)
	}
	text, err := os.ReadFile("benchmark.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"storageClass: \"hostdir\"", "runtime: 7 ", "count: 2 ", "snapshotClass: \"hostdir\"",
		"interval: 5s", "# bs: \"4k\"", "cnsbench run benchmark.yaml"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if code, out, errs := call("validate", "benchmark.yaml"); code != exitOK || errs != "" {
		t.Errorf("validate: exit %d, %q, %q", code, out, errs)
	}
	if code, _, errs := call("init"); code != exitUsage || !strings.Contains(errs, "benchmark.yaml exists") {
		t.Errorf("again: exit %d, %q", code, errs)
	}
}

// TestInitWithWorkloads checks that init makes a valid Benchmark of each workload that it offers.
func TestInitWithWorkloads(t *testing.T) {
	library, err := plan.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	names := withStorage(library)
	if len(names) < 5 {
		t.Errorf("offers only %q", names)
	}
	for _, name := range names {
		code, out, errs := call("init", "--storage-class", "null", "--workload", name, "--snapshot-every", "0", "-")
		if code != exitOK || strings.Contains(out, "snapshotSpec") || !strings.Contains(out, "workload: "+name) {
			t.Errorf("%s: exit %d, %s\n%s", name, code, errs, out)
		}
	}
}

// TestInitClasses checks that init knows every built-in class whose driver this machine can run.
func TestInitClasses(t *testing.T) {
	for _, class := range plan.BuiltInClasses() {
		if _, ok := builtInClasses().snapshots[class]; !ok {
			if driver := strings.TrimSuffix(class, "-xfs"); driverFinding(driver).OK {
				t.Errorf("no class %s", class)
			}
			continue
		}
		if code, out, errs := call("init", "--yes", "--storage-class", class, "-"); code != exitOK {
			t.Errorf("%s: exit %d, %s\n%s", class, code, errs, out)
		}
	}
}

// TestInitForOperator checks that a Benchmark for the operator names its account.
func TestInitForOperator(t *testing.T) {
	server := apitest.Start(t)
	server.Add(t, "/apis/storage.k8s.io/v1/storageclasses/standard", `{"provisioner":"driver.example.io"}`)
	for flag, want := range map[string]string{"": "  # serviceAccountName: bench ",
		"--service-account=mine": "  serviceAccountName: \"mine\"\n"} {
		args := []string{"init", "--engine", "kubernetes", "--kubeconfig", server.Kubeconfig, "--yes", "-"}
		code, out, errs := call(append(args, strings.Fields(flag)...)...)
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d, %s\n%s", flag, code, errs, out)
		}
	}
}

func TestInitRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"--storage-class gold":    `invalid --storage-class "gold": want btrfs`,
		"--workload foi":          `invalid --workload "foi": want `,
		"--count 0":               "invalid --count 0",
		"--runtime 1ms":           "invalid --runtime 1ms",
		"--snapshot-every -1s":    "invalid --snapshot-every -1s",
		"--service-account bench": "engine local has no ServiceAccounts",
		"--engine nomad":          `invalid --engine "nomad"`,
		"--storage-class hostdir": "no-such-directory",
	} {
		file := filepath.Join(t.TempDir(), "no-such-directory", "b.yaml")
		code, out, errs := call(append(append([]string{"init"}, strings.Fields(args)...), file)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %q, %q, want %q", args, code, out, errs, want)
		}
	}
}

// TestInitAsks checks the questions on a terminal: a wrong answer is asked for again, an empty one is the default.
func TestInitAsks(t *testing.T) {
	var out, errs strings.Builder
	s := &streams{in: strings.NewReader("gold\nhostdir\n\n9s\n"), out: &out, err: &errs,
		terminal: func() bool { return true }}
	root := newRoot(s)
	root.SetArgs([]string{"init", "--count", "1", "-"})
	if err := root.ExecuteContext(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"StorageClass: btrfs", "want one of btrfs", "workload: ", "[fio]",
		"interval of snapshots"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("does not ask %q: %s", want, errs.String())
		}
	}
	for _, want := range []string{"workload: fio", "runtime: 9 ", "interval: 5s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// TestInitForACluster checks that the Benchmark for a cluster's class is valid there.
func TestInitForACluster(t *testing.T) {
	f := initFlags{file: "b.yaml", count: 1, runtime: 5e9, every: 1e9}
	f.run.Engine = engineKubernetes
	library, err := plan.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	entry, _ := library.Get("fio")
	text, err := f.benchmark(entry, "standard", "snaps")
	if err != nil {
		t.Fatal(err)
	}
	reclaim, binding := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingWaitForFirstConsumer
	class := storagev1.StorageClass{Provisioner: "x.csi", ReclaimPolicy: &reclaim, VolumeBindingMode: &binding}
	class.Name = "standard"
	_, problems := plan.Load(context.Background(), plan.Input{Files: []plan.File{{Name: "b.yaml", Data: text}},
		Capabilities: kubernetes.Capabilities(), Classes: &plan.Classes{
			Storage:  map[string]storagev1.StorageClass{"standard": class},
			Snapshot: map[string]engine.SnapshotClass{"snaps": {Driver: "x.csi"}}}})
	if len(problems) > 0 || !strings.Contains(string(text), "cnsbench run --engine kubernetes b.yaml") {
		t.Errorf("%v\n%s", problems, text)
	}
}

// TestDoctorRBAC prints the rights of a Benchmark, also without a cluster.
func TestDoctorRBAC(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.yaml")
	if err := os.WriteFile(file, []byte(`apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: b}
spec: {actions: [{name: v, createObjSpec: {volume: {storageClass: standard, size: 1Gi}}}]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(t.TempDir(), "none")
	for flags, want := range map[string]string{"-n measure": "namespace: measure", "": "--namespace",
		"-n measure --service-account me": "name: me\n"} {
		code, out, errs := call(append([]string{"doctor", "--rbac", file, "--kubeconfig", none}, strings.Fields(flags)...)...)
		if ok := flags != ""; ok != (code == exitOK) || !strings.Contains(out+errs, want) ||
			ok != strings.Contains(out, "kind: ClusterRoleBinding") {
			t.Errorf("%s: exit %d\n%s\n%s", flags, code, out, errs)
		}
	}
}
