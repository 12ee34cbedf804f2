package cli

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

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

func TestInstallPrintsItsObjects(t *testing.T) {
	var out, errs strings.Builder
	s := &streams{out: &out, err: &errs}
	c := newInstall(s)
	c.SetArgs([]string{"--output", "yaml", "--namespace", "measure", "--csi-proxy", "driver.example.com",
		"--kubeconfig", filepath.Join(t.TempDir(), "none")})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	var f installFlags
	f.options.Namespace, f.proxies = "measure", []string{"driver.example.com"}
	want, err := f.objects()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(out.String()), 4096)
	for {
		var u unstructured.Unstructured
		if err := d.Decode(&u.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got = append(got, u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName())
	}
	var names []string
	for _, u := range want {
		names = append(names, u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName())
	}
	if diff := cmp.Diff(names, got); diff != "" {
		t.Error(diff)
	}
	c = newInstall(s)
	c.SetArgs([]string{"--output", "json"})
	c.SilenceUsage, c.SilenceErrors = true, true
	if err := c.Execute(); err == nil || !strings.Contains(err.Error(), `invalid --output "json": want yaml`) {
		t.Errorf("--output json: %v", err)
	}
}
