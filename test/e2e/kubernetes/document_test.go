//go:build e2e

package kubernetes

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pages are the guide and the reference of runs on a cluster, whose commands a cluster runs one after another.
var pages = []string{"docs/how-to/kubernetes.md", "docs/reference/kubernetes.md"}

// documented lists the commands of the code blocks of the pages in order, including those after "# or:".
func documented(t *testing.T) (all []string) {
	t.Helper()
	var texts []byte
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text...)
	}
	for _, block := range regexp.MustCompile("(?sm)^```(\\w*)\n(.*?)^```$").FindAllSubmatch(texts, -1) {
		if len(block[1]) > 0 { // text of a language, no commands
			continue
		}
		for line := range strings.Lines(string(block[2])) {
			command, comment, _ := strings.Cut(strings.TrimSpace(line), "# ")
			other, _ := strings.CutPrefix(comment, "or: ")
			if other == comment {
				other = ""
			}
			for _, c := range []string{command, other} {
				if c = strings.TrimSpace(c); c != "" {
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// reader runs the commands of the pages on a cluster with other names.
type reader struct {
	*project
	dir string // the directory of benchmark.yaml
	run string // the name of the run whose results are read
}

// does runs a command in the repository and returns its output.
func (r *reader) does(command string) string {
	r.t.Helper()
	cmd := exec.Command("bash", "-c", command)
	cmd.Dir = filepath.Join("..", "..", "..")
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(r.binary)+":"+os.Getenv("PATH"),
		"KUBECONFIG="+filepath.Join(r.dir, "kubeconfig"))
	out, err := cmd.CombinedOutput()
	r.t.Logf("$ %s\n%s", command, out)
	if err != nil {
		r.t.Fatalf("%s: %v", command, err)
	}
	return string(out)
}

// adapt adapts a command to the test bed.
func (r *reader) adapt(command string) string {
	if strings.HasPrefix(command, "cnsbench install") {
		command += " --results-storage-class hostdir --results-size 1Gi --image " + r.image
	}
	if strings.HasPrefix(command, "cnsbench run") {
		command += " --namespace measure --runner local --image " + r.image +
			" --out " + filepath.Join(r.t.TempDir(), "bundle")
	}
	return strings.NewReplacer(
		"-f benchmark.yaml", "-f "+filepath.Join(r.dir, "benchmark.yaml"),
		" benchmark.yaml", " "+filepath.Join(r.dir, "benchmark.yaml"),
		"-o report.html", "-o "+filepath.Join(r.dir, "report.html"),
		" --out first", " --out "+filepath.Join(r.dir, "first"),
		"measure/RUN", "measure/"+r.run,
		"http://10.1.2.3:8080/metrics", "http://127.0.0.1:23800/metrics",
		"ebs.csi.aws.com=/path/on/nodes/csi.sock", "'btrfs.csi.cnsbench.dev=/run/cnsbench-testbed/btrfs-$(NODE_NAME).sock'",
	).Replace(command)
}

// instead has the expected texts in the output of a documented command, and a function that returns
// a replacement for a command that cannot run unmodified.
type instead struct {
	says    []string
	command func(*reader, string) string
}

// TestDocument checks that each command of the pages works. A command that is not in the table is an error. It puts a
// proxy on a driver, so that no other test runs beside it.
func TestDocument(t *testing.T) {
	bed := newBed(t)
	if _, err := os.Stat(nullSocket); err != nil {
		t.Skipf("its names are those of the test bed: %v", err)
	}
	r := &reader{project: &project{bed, t, "measure"}, dir: t.TempDir()}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.name}}
	for _, name := range []string{ns.Name, bed.namespace} {
		if err := bed.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
			t.Fatalf("namespace %s is there already (%v): not touching it", name, err)
		}
	}
	t.Cleanup(func() { bed.uninstall(t) })
	t.Cleanup(func() {
		r.remove(ns)
		// Created by a documented command.
		_ = exec.Command("kubectl", "delete", "clusterrolebinding", "bench-measure", "bench-pods", "--ignore-not-found").Run()
		_ = exec.Command("kubectl", "delete", "clusterrole", "pod-lister", "--ignore-not-found").Run()
		_ = exec.Command("kubectl", "delete", "-n", "kube-system", "role/log-reader", "rolebinding/bench-logs",
			"--ignore-not-found").Run()
	})
	kubeconfig, err := os.ReadFile(os.Getenv("KUBECONFIG"))
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, "kubeconfig"), kubeconfig, 0o600) // a copy; its namespace is changed
	}
	if err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: fio-benchmark}\n" + strings.TrimSpace(strings.NewReplacer("%s", "6s", `"%s"`, `"null"`).Replace(smallBenchmark)) + "\n"
	if err := os.WriteFile(filepath.Join(r.dir, "benchmark.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	steps := r.steps()
	for _, line := range documented(t) {
		step, known := steps[line]
		if !known {
			t.Errorf("%v have a command that is not tested: %s", pages, line)
			continue
		}
		delete(steps, line)
		command := r.adapt(line)
		if step.command != nil {
			command = step.command(r, command)
		}
		out := ""
		if command != "" {
			out = r.does(command)
		}
		for _, want := range step.says {
			if !strings.Contains(out, want) {
				t.Errorf("%s did not say %q", line, want)
			}
		}
	}
	for line := range steps {
		t.Errorf("%v do not have: %s", pages, line)
	}
	r.text()
}

// steps returns the documented commands with their expectations.
func (r *reader) steps() map[string]instead {
	const apply = "kubectl apply -n measure -f benchmark.yaml"
	both := "kubectl wait --for=condition=Complete --timeout=30m benchmark/fio-benchmark & kubectl wait --for=condition=Failed --timeout=30m benchmark/fio-benchmark & wait -n"
	return map[string]instead{
		"cnsbench install": {says: []string{"installed in namespace cnsbench-system"}},
		"cnsbench install --output yaml >cnsbench.yaml": {command: func(_ *reader, c string) string {
			return strings.Replace(c, " >cnsbench.yaml", "", 1) +
				" | kubectl apply --server-side --force-conflicts --dry-run=server -f -"
		}, says: []string{"deployment.apps/cnsbench-operator serverside-applied"}},
		// test/chart renders and lints the chart.
		"helm install cnsbench charts/cnsbench -n cnsbench-system --create-namespace": {command: func(*reader,
			string) string {
			return ""
		}},
		"cnsbench install --dry-run":                     {},
		"kubectl create namespace measure":               {},
		"kubectl create serviceaccount bench -n measure": {},
		"kubectl create rolebinding bench -n measure --clusterrole=cnsbench-runner --serviceaccount=measure:bench":             {},
		"kubectl create clusterrolebinding bench-measure --clusterrole=cnsbench-runner-cluster --serviceaccount=measure:bench": {},
		apply:                               {},
		"kubectl get benchmarks -n measure": {says: []string{"fio-benchmark"}},
		"kubectl wait -n measure --for=condition=Complete --timeout=30m benchmark/fio-benchmark": {},
		"kubectl describe benchmark -n measure fio-benchmark":                                    {says: []string{"Completed", "RunnerUp", "snapshots-are-taken"}},
		"kubectl delete benchmark -n measure fio-benchmark":                                      {},
		both: {command: func(r *reader, c string) string {
			return r.adapt(apply) + "; kubectl config set-context --current --namespace=measure >/dev/null; " + c +
				"; kill $(jobs -p); kubectl get benchmarks"
		}, says: []string{"condition met", "Completed"}},
		"cnsbench install --csi-proxy ebs.csi.aws.com":                                                                           {command: func(_ *reader, c string) string { return c + " --dry-run" }, says: []string{"DaemonSet cnsbench-csi-proxy/cnsbench-csi-proxy-ebs-csi-aws-com"}},
		"cnsbench install --csi-proxy ebs.csi.aws.com=/path/on/nodes/csi.sock":                                                   {says: []string{"installed in namespace"}},
		"kubectl create rolebinding bench -n cnsbench-csi-proxy --role=cnsbench-csi-proxy-reader --serviceaccount=measure:bench": {},
		"kubectl create clusterrole pod-lister --verb=list --resource=pods":                                                      {},
		"kubectl create clusterrolebinding bench-pods --clusterrole=pod-lister --serviceaccount=measure:bench":                   {},
		"kubectl create role log-reader -n kube-system --verb=get --resource=pods/log":                                           {},
		"kubectl create rolebinding bench-logs -n kube-system --role=log-reader --serviceaccount=measure:bench":                  {},
		"cnsbench validate --engine kubernetes -n measure benchmark.yaml":                                                        {says: []string{"fio-benchmark is valid"}},
		"cnsbench run --engine kubernetes -n measure --dry-run benchmark.yaml":                                                   {says: []string{"nothing was created"}},
		"cnsbench run --engine kubernetes -n measure --create-rbac --out first benchmark.yaml":                                   {command: inPod, says: []string{"none failed"}},
		"cnsbench show first":    {command: ofBundle, says: []string{"snapshots"}},
		"cnsbench cleanup first": {command: ofBundle, says: []string{"nothing is left"}},
		"cnsbench show --cluster measure/RUN --results-account bench": {command: func(r *reader, c string) string {
			return strings.Replace(c, "measure/", "measure/"+r.of(), 1)
		}, says: []string{"snapshots"}},
		"cnsbench report --cluster measure/RUN --results-account bench -o report.html":                           {},
		"cnsbench run --engine kubernetes --metrics csi-provisioner=http://10.1.2.3:8080/metrics benchmark.yaml": {says: []string{"none failed"}},
		"cnsbench run --engine kubernetes --csi-proxy 10.1.2.3:9443 benchmark.yaml": {command: func(r *reader,
			c string) string {
			return strings.Replace(c, "10.1.2.3:9443", r.proxyNull(), 1)
		}, says: []string{"none failed"}},
	}
}

// inPod is a run as it is documented: in a pod, with its own bundle.
func inPod(r *reader, command string) string {
	command, _, _ = strings.Cut(command, " --namespace ")
	return command + " --image " + r.image
}

// ofBundle is a command on the bundle of that run.
func ofBundle(r *reader, command string) string {
	return strings.TrimSuffix(command, "first") + filepath.Join(r.dir, "first")
}

// of returns the run of the Benchmark in the namespace, found as the document describes.
func (r *reader) of() string {
	r.t.Helper()
	lines := strings.Split(r.does("kubectl get benchmarks -n measure"), "\n")
	if got, want := strings.Join(strings.Fields(lines[0]), " "), "NAME STATUS RUN OPS FAILED AGE"; got != want {
		r.t.Errorf("columns %q, documented are %q", got, want)
	}
	r.run = strings.Fields(lines[1])[2]
	return r.run
}

// text does the steps that the document describes in its text.
func (r *reader) text() {
	r.t.Helper()
	if fi, err := os.Stat(filepath.Join(r.dir, "report.html")); err != nil || fi.Size() < 10000 {
		r.t.Errorf("the report: %v, %v", fi, err)
	}
	r.does("kubectl cnsbench run -n measure --image " + r.image + " --out " + filepath.Join(r.dir, "bundle") +
		" " + filepath.Join(r.dir, "benchmark.yaml"))
	r.does("kubectl apply --server-side -f charts/cnsbench/crds/ --force-conflicts")
	r.does("kubectl delete namespace cnsbench-csi-proxy")
	r.does("cnsbench uninstall --force")
	claim := &corev1.PersistentVolumeClaimList{}
	if err := r.List(context.Background(), claim, client.InNamespace(r.testBed.namespace)); err != nil ||
		len(claim.Items) != 1 {
		r.t.Errorf("the volume with the bundles was not kept: %d claims, %v", len(claim.Items), err)
	}
}
