package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestCSIProxyIsOffByDefault(t *testing.T) {
	all, err := Objects(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range all {
		if strings.Contains(fmt.Sprint(u.Object), "csi-proxy") {
			t.Errorf("%s %s", u.GetKind(), u.GetName())
		}
	}
}

func TestCSIProxyFitsItsDrivers(t *testing.T) {
	all, err := Objects(Options{Image: "example/cnsbench:v9",
		CSIProxy: &CSIProxy{Token: "0123456789abcdef", NodeSelector: map[string]string{"disk": "fast"},
			Drivers: []CSIDriver{{"a.example.com", "/var/lib/kubelet/plugins/a.example.com/csi.sock"},
				{"B.com", "/opt/b/node.sock"}}}})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, u := range all {
		if u.GetNamespace() == ProxyNamespace {
			found[u.GetKind()+" "+u.GetName()] = fmt.Sprint(u.Object)
		}
	}
	for name, wants := range map[string][]string{
		"Secret cnsbench-csi-proxy": {"token:0123456789abcdef"},
		"DaemonSet cnsbench-csi-proxy-a-example-com": {"--driver=a.example.com --take-over=/csi/csi.sock --serve",
			"path:/var/lib/kubelet/plugins/a.example.com ",
			"matchLabels:map[app.kubernetes.io/component:csi-proxy cnsbench.dev/csi-driver:a.example.com]", "nodeSelector:map[disk:fast kubernetes.io/os:linux]", "image:example/cnsbench:v9"},
		"DaemonSet cnsbench-csi-proxy-b-com": {"--driver=B.com --take-over=/csi/node.sock", "path:/opt/b ",
			"cnsbench.dev/csi-driver:B.com"},
	} {
		for _, want := range wants {
			if !strings.Contains(found[name], want) {
				t.Errorf("%s has no %q: %s", name, want, found[name])
			}
		}
		if strings.Contains(found[name], exampleDriver) {
			t.Errorf("%s is still the example's: %s", name, found[name])
		}
	}
}

func TestParseCSIDriver(t *testing.T) {
	for text, want := range map[string]CSIDriver{
		"ebs.csi.aws.com":  {"ebs.csi.aws.com", "/var/lib/kubelet/plugins/ebs.csi.aws.com/csi.sock"},
		"d=/opt/d/x.sock":  {"d", "/opt/d/x.sock"},
		"":                 {},
		"d=":               {},
		"d=relative/sock":  {},
		"d=/csi.sock":      {},
		"d=/a/../etc/sock": {},
		"a b":              {},
		"-d":               {},
	} {
		got, err := ParseCSIDriver(text)
		if got != want || (err != nil) != (want == CSIDriver{}) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
