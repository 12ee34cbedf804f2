package plan

import (
	"strings"
	"testing"
)

// TestOutputs checks that valid outputs give no warnings.
func TestOutputs(t *testing.T) {
	p := good(t, Input{}, `spec:
  runtime: 10s
  actions:
    - {name: v, outputs: {outputName: es}, createObjSpec: {volume: {storageClass: hostdir, size: 1Gi}}}
  outputs:
    - {name: es, httpPostSpec: {url: "http://es:9200/fio/_doc/"}}
    - {name: other, httpPostSpec: {url: "https://[::1]:9200/x"}}
`)
	if len(p.Warnings) > 0 {
		t.Errorf("warnings %v", p.Warnings)
	}
}

// TestBadOutputs checks that invalid URLs of outputs are reported, without secrets in the
// message.
func TestBadOutputs(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"http://:9200/x", "no host in"},
		{"http://es:9200/%zz", "this is not a URL"},
		{"http://user:secret@es/x", "credentials"},
		{"http://es/x#y", "#y"},
		{"http://es/x?key=secret", "CNSBENCH_OUTPUT_<NAME>_QUERY"},
		{"http://es/x?", "CNSBENCH_OUTPUT_<NAME>_QUERY"},
		{"http://es:99999/x", "port 99999"},
	} {
		_, problems := load(t, Input{Files: []File{{Name: "x.yaml", Data: []byte(head + `spec:
  actions: [{name: v, createObjSpec: {volume: {storageClass: hostdir, size: 1Gi}}}]
  outputs:
    - {name: es, httpPostSpec: {url: "` + tt.url + `"}}
`)}}})
		if len(problems) != 1 {
			t.Errorf("%s: %v", tt.url, problems)
			continue
		}
		text := problems[0].String()
		if !strings.HasPrefix(text, "x.yaml:7:38: spec.outputs[0].httpPostSpec.url: ") ||
			!strings.Contains(text, tt.want) || strings.Contains(text, "secret") {
			t.Errorf("%s: %s", tt.url, text)
		}
	}
}
