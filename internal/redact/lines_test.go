package redact

import (
	"strings"
	"testing"
)

func TestLine(t *testing.T) {
	const r = Hidden
	tests := []struct{ name, line, want string }{
		{"nothing secret", `I1124 controller.go:1 "Started" volume="pvc-0a1b" duration="1.2s"`,
			`I1124 controller.go:1 "Started" volume="pvc-0a1b" duration="1.2s"`},
		{"a known value", "login as admin with hunter22", "login as admin with " + r},
		{"a known value within another", "hunter22-long!", r},
		{"variable", "AWS_SECRET_ACCESS_KEY=wJalr/XUtnFEMI next=1", "AWS_SECRET_ACCESS_KEY=" + r + " next=1"},
		{"field", "password: s3cr3t, user: x", "password: " + r + ", user: x"},
		{"JSON", `{"userKey":"AQBx\"y==","pool":"rbd"}`, `{"userKey":` + r + `,"pool":"rbd"}`},
		{"JSON in a quoted message", `msg="GRPC request: {\"adminPassword\":\"a b\",\"pool\":\"rbd\"}"`,
			`msg="GRPC request: {\"adminPassword\":` + r + `,\"pool\":\"rbd\"}"`},
		{"value without its end", `"api_key": "abc def`, `"api_key": ` + r},
		{"protobuf text", `secrets:<key:"adminKey" value:"AQ>B" > name:"pvc"`, "secrets:" + r + ` name:"pvc"`},
		{"several", `secrets:{key:"a" value:"b}c"} secrets:{key:"d" value:"e"} x:1`,
			"secrets:" + r + " secrets:" + r + " x:1"},
		{"JSON secrets", `"secrets":{"a":"b}c"},"x":1`, `"secrets":` + r + `,"x":1`},
		{"Go map", "Secrets:map[a:b c:d] x", "Secrets:" + r + " x"},
		{"header", "Authorization: Bearer abc.def-123 more", "Authorization: Bearer " + r + " more"},
		{"other header", `"X-Auth-Token": ["gAAAA"]`, `"X-Auth-Token": ` + r},
		{"bare token", "using bearer abcdef123456", "using bearer " + r},
		{"URL", "dial https://admin:p%40ss@host:8080/x", "dial https://" + r + "@host:8080/x"},
		{"redis URL", "redis://:pass@host", "redis://" + r + "@host"},
		{"signed URL", "GET /b/k?X-Amz-Signature=0af3&X-Amz-Date=1", "GET /b/k?X-Amz-Signature=" + r + "&X-Amz-Date=1"},
		{"SAS", "https://h/c?sv=1&sig=ab%2B&se=2", "https://h/c?sv=1&sig=" + r + "&se=2"},
		{"access key", "key AKIAIOSFODNN7EXAMPLE used", "key " + r + " used"},
		{"JWT", "got eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJl.c2lnbmF0dXJl ok", "got " + r + " ok"},
		{"flag", "exec mount.cifs --password hunter2 -o rw", "exec mount.cifs --password " + r + " -o rw"},
		{"mount option", "mount -t ceph -o name=admin,secret=AQBx==,noatime",
			"mount -t ceph -o name=admin,secret=" + r + ",noatime"},
		{"key in a line", "a -----BEGIN RSA PRIVATE KEY-----MIIE-----END RSA PRIVATE KEY----- b", "a " + r + " b"},
		{"line of a key", strings.Repeat("Ab3/", 16), r},
		{"twice", Hidden + " password=" + Hidden, Hidden + " password=" + Hidden},
	}
	redactor := NewLines("hunter22", "hunter22-long!", "adm") // the last is too short
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := redactor.Line(&Source{}, tt.line)
			if got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
			if again := redactor.Line(&Source{}, got); again != got {
				t.Errorf("again: %s", again)
			}
		})
	}
}

// TestLineKey checks a key over several lines, and that a begin without an end does not hide a log for ever.
func TestLineKey(t *testing.T) {
	redactor := NewLines()
	var k Source
	for _, tt := range [][2]string{{"x -----BEGIN PRIVATE KEY-----", "x " + Hidden}, {"short", Hidden}, {"", Hidden},
		{"-----END PRIVATE KEY----- y", Hidden + " y"}, {"short", "short"}, {"-----BEGIN EC PRIVATE KEY-----", Hidden}} {
		if got := redactor.Line(&k, tt[0]); got != tt[1] {
			t.Errorf("%q: got %q, want %q", tt[0], got, tt[1])
		}
	}
	for range longestKey {
		if got := redactor.Line(&k, "short"); got != Hidden {
			t.Fatalf("got %q inside of a key", got)
		}
	}
	if got := redactor.Line(&k, "short"); got != "short" {
		t.Errorf("got %q after %d lines", got, longestKey)
	}
}
