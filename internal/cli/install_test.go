package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/config"
)

func TestInstallFlagsOfTheProxy(t *testing.T) {
	f := installFlags{proxies: []string{"a.example.com", "b=/opt/b/x.sock"}, nodes: "disk=fast,zone=1"}
	if err := f.csiProxy(); err != nil {
		t.Fatal(err)
	}
	got := f.options.CSIProxy
	if len(got.Token) < 16 {
		t.Errorf("token %q", got.Token)
	}
	got.Token = ""
	want := &config.CSIProxy{NodeSelector: map[string]string{"disk": "fast", "zone": "1"}, Drivers: []config.CSIDriver{
		{Name: "a.example.com", Socket: "/var/lib/kubelet/plugins/a.example.com/csi.sock"}, {Name: "b",
			Socket: "/opt/b/x.sock"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var none installFlags
	if err := none.csiProxy(); err != nil || none.options.CSIProxy != nil {
		t.Errorf("without the flag: %+v, %v", none.options.CSIProxy, err)
	}
	for _, wrong := range []installFlags{{proxies: []string{"no name"}}, {proxies: []string{"d=relative"}},
		{proxies: []string{"d"}, nodes: "a in (b)"}} {
		if err := wrong.csiProxy(); err == nil {
			t.Errorf("%+v was taken", wrong)
		}
	}
}
