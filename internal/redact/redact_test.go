package redact

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArgs(t *testing.T) {
	got := Args([]string{"/driver", "--kube-api-qps=5", "--password=hunter2", "--token", "abc", "--token-file", "/t",
		"--endpoint=https://u:p@host/x", "https://u:p@host", "DB_PASSWORD=x", "--secret", "--v=5", "--leader-election",
		"--authorization-mode=Node", "exec /driver --token abc --password=x --v=5", "-H", "Authorization: Bearer abcdefgh"})
	want := []string{"/driver", "--kube-api-qps=5", "--password=***", "--token", "***", "--token-file", "/t",
		"--endpoint=https://***@host/x", "https://***@host", "DB_PASSWORD=***", "--secret", "--v=5", "--leader-election",
		"--authorization-mode=Node", "exec /driver --token *** --password=*** --v=5", "-H", "Authorization: Bearer ***"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{"password": true, "adminPassword": true, "accessKey": true, "api_key": true,
		"csi.storage.k8s.io/provisioner-secret-name": false, "csi.storage.k8s.io/node-stage-secret-namespace": false,
		"secretRef": false, "kube-api-qps": false, "replicas": false, "tokenRequests": true, "key": false,
		"AWS_SECRET_ACCESS_KEY": true, "OS_PASSWORD": true, "GITHUB_TOKEN": true, "AWS_ACCESS_KEY_ID": true, "userKey": true,
		"adminKey": true, "HOME": false, "KEYBOARD": false, "AWS_SHARED_CREDENTIALS_FILE": false, "signatureVersion": false} {
		if got := Names(name); got != want {
			t.Errorf("Names(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestObject(t *testing.T) {
	digest := strings.Repeat("0a", 32) // not a secret
	var v any
	text := `{"spec": {"replicas": 3, "password": "p", "env": [{"name": "TOKEN", "value": "t"}, {"name": "X", "value": "y"}],
		"secretRef": {"name": "s"}, "urls": ["s3://a:b@c"],
		"args": ["--secret", "x", "--pool=y"], "digest": "` + digest + `", "tls": "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----"}}`
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(Object(v))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"spec":{"args":["--secret","***","--pool=y"],"digest":"` + digest + `","env":[{"name":"TOKEN","value":"***"},{"name":"X","value":"y"}],"password":"***","replicas":3,` +
		`"secretRef":{"name":"s"},"tls":"***","urls":["s3://***@c"]}}`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
