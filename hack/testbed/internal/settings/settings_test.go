package settings

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	s := Defaults()
	rest, err := s.Parse("restart", strings.Fields("csi-provisioner --sidecar-timeout 10s --provisioner-timeout 3s --provisioner-qps 5 kcm --kcm-qps=20 --arg kcm=--v=4"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"csi-provisioner", "kcm"}; !slices.Equal(rest, want) {
		t.Errorf("names %q, want %q", rest, want)
	}
	if got, want := s.Limits["provisioner"], (Limits{QPS: 5, Burst: 1000, Timeout: 3 * time.Second}); got != want {
		t.Errorf("provisioner: %+v, want %+v", got, want)
	}
	if got, want := s.Limits["attacher"], (Limits{QPS: 500, Burst: 1000, Timeout: 10 * time.Second}); got != want {
		t.Errorf("attacher: %+v, want %+v", got, want)
	}
	if got := s.Limits["kcm"]; got.QPS != 20 || got.Timeout != 0 {
		t.Errorf("kcm: %+v", got)
	}
	if got := s.Extra["kcm"]; !slices.Equal(got, []string{"--v=4"}) {
		t.Errorf("further arguments %q", got)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, args := range []string{"--kcm-qps -1", "--kcm-qps many", "--kcm-timeout 1s", "--arg kcm",
		"--audit-level Everything", "--proxy-mode ipvs", "--node-status 1ms", "--provisioner-workers -1"} {
		s := Defaults()
		if _, err := s.Parse("up", strings.Fields(args)); err == nil {
			t.Errorf("%s is taken", args)
		}
	}
}

func TestNodesGoElsewhereWhenThePathIsLong(t *testing.T) {
	short := Layout{Dir: "/srv/out/testbed"}
	if got := short.NodeDir(node(1)); got != "/srv/out/testbed/node1" {
		t.Errorf("short: %s", got)
	}
	long := Layout{Dir: "/" + strings.Repeat("x", 100)}
	if got := long.NodeDir(node(1)); got != longNodes+"/node1" {
		t.Errorf("long: %s", got)
	}
	for _, d := range Drivers() {
		for _, n := range Nodes() {
			if got := long.DriverSocket(d.Backend, &n); len(got) > maxSocket {
				t.Errorf("the socket %s is too long", got)
			}
		}
	}
}
