package kubernetes

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/apitest"
)

// logs keeps what is logged.
type logs struct {
	engine.Sink
	lines []string
}

func (l *logs) Log(_, line string) { l.lines = append(l.lines, line) }

func TestChooseDelivery(t *testing.T) {
	for _, c := range []struct {
		name    string
		asked   podspec.Delivery
		nodes   [][2]string // kubelet, runtime
		without bool
		want    podspec.Delivery
		logs    string
	}{
		{name: "all can", nodes: [][2]string{{"v1.36.0", "containerd://2.1.4"}, {"v1.35.2+k3s1", "cri-o://1.31.0"}},
			want: podspec.DeliverImage},
		{name: "no feature in the API server", nodes: [][2]string{{"v1.36.0", "containerd://2.1.4"}}, without: true,
			want: podspec.DeliverInit, logs: "feature ImageVolume"},
		{name: "an older kubelet", nodes: [][2]string{{"v1.36.0", "containerd://2.1.4"}, {"v1.34.1", "containerd://2.1.4"}},
			want: podspec.DeliverInit, logs: "node n1 does not mount image volumes (kubelet v1.34.1, containerd://2.1.4)"},
		{name: "an older runtime", nodes: [][2]string{{"v1.35.0", "containerd://1.7.28"}}, want: podspec.DeliverInit,
			logs: "containerd://1.7.28"},
		{name: "an unknown runtime", nodes: [][2]string{{"v1.35.0", "docker://28.0.0"}}, want: podspec.DeliverInit,
			logs: "docker://28.0.0"},
		{name: "a version that cannot be read", nodes: [][2]string{{"unknown", "containerd://2.1.4"}},
			want: podspec.DeliverInit, logs: "kubelet unknown"},
		{name: "asked for", asked: podspec.DeliverInit, nodes: [][2]string{{"v1.36.0", "containerd://2.1.4"}},
			want: podspec.DeliverInit},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := apitest.Start(t)
			server.WithoutImageVolumes = c.without
			for i, n := range c.nodes {
				server.Add(t, fmt.Sprintf("/api/v1/nodes/n%d", i), fmt.Sprintf(
					`{"status":{"nodeInfo":{"kubeletVersion":%q,"containerRuntimeVersion":%q}}}`, n[0], n[1]))
			}
			e := New(Options{Config: &rest.Config{Host: server.URL}, Image: "cnsbench:1", Delivery: c.asked})
			log := &logs{}
			e.Session.Sink, e.Session.RunID = log, "r1"
			if err := e.Connect(op.NewClock()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.Client.Close)
			e.chooseDelivery(t.Context())
			if got := strings.Join(log.lines, "\n"); e.Delivery != c.want || !strings.Contains(got, c.logs) ||
				(got == "") != (c.logs == "") {
				t.Errorf("got %s, %q; want %s, %q", e.Delivery, got, c.want, c.logs)
			}
			for _, path := range server.Paths() {
				if strings.Contains(path, "/pods/") {
					t.Errorf("%s was created", path)
				}
			}
		})
	}
}
