package plan

import (
	"strings"
	"testing"
	"time"
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
    - {name: search, elasticsearchSpec: {url: "https://es:9200", credentials: {file: /home/me/es}}}
    - {name: prometheus, remoteWriteSpec: {url: "http://prometheus:9090/api/v1/write"}}
    - {name: s3, s3Spec: {endpoint: "https://s3:9000", bucket: results, prefix: a/b, credentials: {file: /home/me/s3}}}
    - {name: lines, fileSpec: {path: a/results.jsonl}}
    - {name: tables, fileSpec: {path: a/results.csv, format: csv}}
`)
	if len(p.Warnings) > 0 {
		t.Errorf("warnings %v", p.Warnings)
	}
	if index := p.Benchmark.Spec.Outputs[2].ElasticsearchSpec.Index; index != "cnsbench" {
		t.Errorf("index %q", index)
	}
	if interval := p.Benchmark.Spec.Outputs[3].RemoteWriteSpec.Interval.Duration.Duration; interval != 5*time.Second {
		t.Errorf("interval %v", interval)
	}
}

// TestBadRemoteWriteAndS3 checks fields of these outputs, without secrets in the message.
func TestBadRemoteWriteAndS3(t *testing.T) {
	for _, tt := range []struct{ spec, want string }{
		{"remoteWriteSpec: {url: 'http://user:secret@p/w'}", "remoteWriteSpec.url: a URL with credentials"},
		{"remoteWriteSpec: {url: 'http://p/w', interval: 999ms}", "remoteWriteSpec.interval: too short: 999ms"},
		{"remoteWriteSpec: {url: 'http://p/w', interval: 5}", "remoteWriteSpec.interval"},
		{"remoteWriteSpec: {url: 'http://p/w', credentials: {secretName: s}}", "there are no Secrets on engine local"},
		{"s3Spec: {endpoint: 'http://user:secret@s3', bucket: b3b}", "s3Spec.endpoint: an endpoint has neither"},
		{"s3Spec: {endpoint: 'http://s3/?x=secret', bucket: b3b}", "s3Spec.endpoint: an endpoint has neither"},
		{"s3Spec: {endpoint: 'http://:9000', bucket: b3b}", "s3Spec.endpoint: no host in"},
		{"s3Spec: {endpoint: 'http://s3', bucket: B}", "s3Spec.bucket"},
		{"s3Spec: {endpoint: 'http://s3', bucket: b3b, prefix: /a}", "s3Spec.prefix"},
		{"s3Spec: {endpoint: 'http://s3', bucket: b3b, prefix: a/../b}", "s3Spec.prefix"},
		{"s3Spec: {endpoint: 'http://s3', bucket: b3b, credentials: {secretName: s}}", "there are no Secrets"},
		{"s3Spec: {endpoint: 'http://s3'}", "bucket"},
	} {
		_, problems := load(t, Input{Files: []File{{Name: "x.yaml", Data: []byte(head + `spec:
  actions: [{name: v, createObjSpec: {volume: {storageClass: hostdir, size: 1Gi}}}]
  outputs:
    - {name: o, ` + tt.spec + `}
`)}}})
		if len(problems) != 1 || !strings.Contains(problems[0].String(), tt.want) ||
			strings.Contains(problems[0].String(), "secret@") {
			t.Errorf("%s: %v", tt.spec, problems)
		}
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

// TestBadOutputFiles checks that a file of an output cannot be outside the bundle or be used twice.
func TestBadOutputFiles(t *testing.T) {
	for _, tt := range []struct{ spec, want string }{
		{"path: /etc/x", "an absolute path"},
		{"path: a/../../x", "a path with .. could leave the bundle"},
		{"path: a//b", "invalid path"},
		{"path: a/", "invalid path"},
		{"path: .", "invalid path"},
		{"path: ./x", "invalid path"},
		{`path: "a\nb"`, "invalid path"},
		{"path: x.tmp", "unfinished files"},
		{"path: taken.jsonl", "used by the output at spec.outputs[0]"},
		{"path: taken.jsonl/x", "used by the output at spec.outputs[0]"},
		{"path: tables.ops.csv", "used by the output at spec.outputs[1]"},
		{"path: tables, format: csv", "used by the output at spec.outputs[1]"},
	} {
		_, problems := load(t, Input{Files: []File{{Name: "x.yaml", Data: []byte(head + `spec:
  actions: [{name: v, createObjSpec: {volume: {storageClass: hostdir, size: 1Gi}}}]
  outputs:
    - {name: first, fileSpec: {path: taken.jsonl}}
    - {name: second, fileSpec: {path: tables.csv, format: csv}}
    - {name: third, fileSpec: {` + tt.spec + `}}
`)}}})
		if len(problems) != 1 || !strings.Contains(problems[0].String(), "spec.outputs[2].fileSpec.path: ") ||
			!strings.Contains(problems[0].String(), tt.want) {
			t.Errorf("%s: %v", tt.spec, problems)
		}
	}
}

// TestBadElasticsearch checks credentials in a URL, those of the other engine, and invalid names.
func TestBadElasticsearch(t *testing.T) {
	for _, tt := range []struct{ spec, want string }{
		{"url: 'http://user:secret@es'", "elasticsearchSpec.url: a URL with credentials"},
		{"url: 'http://es', credentials: {secretName: s}", "credentials.secretName: there are no Secrets on engine local"},
		{"url: 'http://es', index: A*", "elasticsearchSpec.index"},
		{"url: 'http://es', credentials: {}", "exactly one of"},
	} {
		_, problems := load(t, Input{Files: []File{{Name: "x.yaml", Data: []byte(head + `spec:
  actions: [{name: v, createObjSpec: {volume: {storageClass: hostdir, size: 1Gi}}}]
  outputs:
    - {name: es, elasticsearchSpec: {` + tt.spec + `}}
`)}}})
		if len(problems) != 1 || !strings.Contains(problems[0].String(), tt.want) ||
			strings.Contains(problems[0].String(), "secret@") {
			t.Errorf("%s: %v", tt.spec, problems)
		}
	}
}
