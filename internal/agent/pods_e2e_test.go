//go:build e2e

package agent_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/agenttest"
)

// cluster is a namespace that enforces the restricted Pod Security Standard, and a runner that its pods can reach.
type cluster struct {
	*fixture
	kubectl   string
	namespace string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	config := os.Getenv("KUBECONFIG")
	if config == "" {
		t.Skip("no KUBECONFIG: make testbed-up makes a cluster and says where its kubeconfig is")
	}
	c := &cluster{kubectl: filepath.Join(filepath.Dir(config), "bin", "kubectl")} // kubectl of the test cluster
	if _, err := os.Stat(c.kubectl); err != nil {
		if c.kubectl, err = exec.LookPath("kubectl"); err != nil {
			t.Skip("there is no kubectl")
		}
	}
	f := &fixture{t: t, clock: op.NewClock(), sink: agenttest.NewSink()}
	c.fixture = f
	server, err := url.Parse(c.run("", "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"))
	if err != nil {
		t.Fatal(err)
	}
	route, err := net.Dial("udp", net.JoinHostPort(server.Hostname(), "9")) // sends no packet
	if err != nil {
		t.Fatal(err)
	}
	defer route.Close() // the error is irrelevant in a test
	if f.Server, err = agent.ListenTLS(t.Context(), ":0", route.LocalAddr().(*net.UDPAddr).IP.String(), f.clock,
		f.sink); err != nil {
		t.Fatal(err)
	}
	f.closeAtEnd()
	c.namespace = fmt.Sprintf("agent-%d", time.Now().UnixNano())
	c.run("", "create", "namespace", c.namespace)
	t.Cleanup(func() { c.run("", "delete", "namespace", c.namespace, "--wait=false") })
	c.run("", "label", "namespace", c.namespace, "pod-security.kubernetes.io/enforce=restricted")
	return c
}

// run runs kubectl in the namespace and returns its output.
func (c *cluster) run(input string, args ...string) string {
	c.t.Helper()
	if c.namespace != "" {
		args = append(args, "--namespace", c.namespace)
	}
	cmd := exec.Command(c.kubectl, args...)
	cmd.Stdin = strings.NewReader(input)
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		c.t.Errorf("kubectl %v: %v: %s", args, err, out)
	}
	return out.String()
}

// pod creates a pod with the CNSBench image. The image has no shell; the pod has an unprivileged user and a read-only
// root. An init container installs the agent.
func (c *cluster) pod(name, restart string, s *agent.Session, args ...string) {
	c.t.Helper()
	type m = map[string]any
	security := m{
		"allowPrivilegeEscalation": false, "runAsNonRoot": true, "runAsUser": nobody, "readOnlyRootFilesystem": true,
		"capabilities": m{"drop": []string{"ALL"}}, "seccompProfile": m{"type": "RuntimeDefault"},
	}
	image := "localhost/cnsbench:dev"
	if from := os.Getenv("CNSBENCH_IMAGE"); from != "" {
		image = from
	}
	var env []m
	for _, e := range s.Env() {
		k, v, _ := strings.Cut(e, "=")
		env = append(env, m{"name": k, "value": v})
	}
	mounts := []m{{"name": "bin", "mountPath": "/.cnsbench"}, {"name": "data", "mountPath": "/data"}}
	manifest, err := json.Marshal(m{
		"apiVersion": "v1", "kind": "Pod", "metadata": m{"name": name},
		"spec": m{
			"restartPolicy":   restart,
			"securityContext": m{"fsGroup": nobody},
			"volumes":         []m{{"name": "bin", "emptyDir": m{}}, {"name": "data", "emptyDir": m{}}},
			"initContainers": []m{{"name": "install", "image": image,
				"command": []string{"/cnsbench-agent", "install",
					"/.cnsbench"}, "volumeMounts": mounts, "securityContext": security}},
			"containers": []m{{"name": "c", "image": image,
				"command": append([]string{"/.cnsbench/cnsbench-agent"},
					args...), "env": env, "volumeMounts": mounts, "securityContext": security}},
		},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.run(string(manifest), "create", "-f", "-")
}

// TestPodWrap checks a command of an image without a shell in a restricted pod.
func TestPodWrap(t *testing.T) {
	c := newCluster(t)
	s := c.expect("p", agent.Options{Barrier: "b", Offset: 3 * time.Second,
		Probes: []protocol.VolumeProbeSpec{{Volume: "data", Path: "/data", Write: true}}})
	c.pod("p", "Never", s, "wrap", "--", "/cnsbench-agent", "version")
	if _, _, err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	touches := s.VolumeProbes()
	arrival, _ := s.Arrival()
	if len(touches) != 1 || touches[0].Failure != "" || touches[0].Began < arrival.Began {
		t.Errorf("touches %+v, arrival %+v", touches, arrival)
	}
	at := c.clock.Now() + op.Time(100*time.Millisecond)
	if err := s.Release(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	end := c.done(s)
	started, plusMinus, err := s.Started(t.Context())
	if err != nil || started < at-op.Time(plusMinus) || started > at+op.Time(200*time.Millisecond) || !end.OK() {
		t.Errorf("skew %v ± %v, %v, end %+v", time.Duration(started-at), time.Duration(plusMinus), err, end)
	}
	t.Logf("from the agent's begin to its first write %v, skew %v ± %v, dialed %d times in %v",
		time.Duration(touches[0].At-arrival.Began), time.Duration(started-at), time.Duration(plusMinus), arrival.Attempts, arrival.Dialing)
	out, _ := c.sink.OutputOf("p", "c", "stdout")
	if log := c.run("", "logs", "p", "-c", "c"); !strings.Contains(log, "protocol") || log != string(out) {
		t.Errorf("kubectl logs %q, delivered %q", log, out)
	}
	t.Log(c.sink.Logs())
}

// TestPodRestart checks the restart of a container by the kubelet.
func TestPodRestart(t *testing.T) {
	c := newCluster(t)
	s := c.expect("p", agent.Options{})
	c.pod("p", "OnFailure", s, "wrap", "--log-dir", "none", "--", "/cnsbench-agent", "no-such-command")
	if end := c.done(s); end.ExitCode != 2 {
		t.Errorf("end %+v", end)
	}
	const want = "container p/c was started a second time"
	agenttest.Eventually(t, "the runner's log says it",
		func() bool { return strings.Contains(c.sink.Logs(), want) })
	agenttest.Eventually(t, "the pod's log says it",
		func() bool { return strings.Contains(c.run("", "logs", "p", "-c", "c"), want) })
}

// TestPodHold checks that a volume is held until its pod is deleted or the runner ends the hold.
func TestPodHold(t *testing.T) {
	c := newCluster(t)
	deleted, told := c.expect("deleted", agent.Options{}), c.expect("told", agent.Options{})
	c.pod("deleted", "Never", deleted, "hold")
	c.pod("told", "Never", told, "hold")
	for _, s := range []*agent.Session{deleted, told} {
		if _, _, err := s.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	c.run("", "delete", "pod", "deleted", "--wait=false")
	if end := c.done(deleted); !end.OK() || time.Since(began) > 5*time.Second {
		t.Errorf("deleted: %+v after %v", end, time.Since(began))
	}
	if err := told.Signal(syscall.SIGTERM, 0); err != nil {
		t.Fatal(err)
	}
	if end := c.done(told); !end.OK() {
		t.Errorf("told: %+v", end)
	}
	c.run("", "wait", "pod", "told", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=20s")
}
