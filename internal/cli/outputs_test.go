package cli

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/output"
)

// TestOutputsHaveNoSecrets: the document of an op that is sent during the run has the message of the bundle.
func TestOutputsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 8)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
	}))
	defer server.Close()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "b"), bundle.Run{ID: "r", BarrierAt: op.Never, EndedAt: op.Never})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close(func(r *bundle.Run) { r.State = bundle.Complete }) }()
	w.Hide("hunter2-of-the-run")
	sender, err := output.Start(t.Context(), w.Dir(), bundle.Run{ID: "r"},
		[]output.Target{{Name: "o", URL: server.URL, Actions: map[string]bool{"a": true}}}, output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := &outgoing{w, sender, nil}
	o.Op(op.Op{ID: 1, Action: "a", Outcome: op.Error, Message: "password=opensesame: hunter2-of-the-run is wrong"})
	deadline := time.After(time.Minute)
	for {
		select {
		case body := <-bodies:
			if strings.Contains(body, "opensesame") || strings.Contains(body, "hunter2") {
				t.Fatalf("a document has a secret: %s", body)
			}
			if strings.Contains(body, `"kind":"op"`) {
				if !strings.Contains(body, `"message":"password=*** *** is wrong"`) {
					t.Errorf("another message: %s", body)
				}
				return
			}
		case <-deadline:
			t.Fatal("no document of the op arrived")
		}
	}
}

// TestOutputCredentials checks the sources of the header Authorization, and that problems do not show a secret.
func TestOutputCredentials(t *testing.T) {
	write := func(text string, mode os.FileMode) *v1alpha1.OutputCredentials {
		t.Helper()
		path := filepath.Join(t.TempDir(), "credentials")
		if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return &v1alpha1.OutputCredentials{File: path}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"},
		Data: map[string][]byte{"authorization": []byte("ApiKey abc\n")}}
	on := &cluster.Cluster{Namespace: "n", Set: fake.NewClientset(secret)}
	for _, tt := range []struct {
		from       *v1alpha1.OutputCredentials
		on         *cluster.Cluster
		want, fail string
	}{
		{},
		{from: write("# of es\nusername=me\npassword = hunter2\n", 0o600), want: "Basic bWU6aHVudGVyMg=="},
		{from: write("username=me\npassword=hunter2\n", 0o644), fail: "chmod 600"},
		{from: write("hunter2", 0o600), fail: ":1: want KEY=VALUE"},
		{from: write("password=hunter2", 0o600), fail: "want the keys username and password, or authorization"},
		{from: &v1alpha1.OutputCredentials{SecretName: "s"}, on: on, want: "ApiKey abc"},
		{from: &v1alpha1.OutputCredentials{SecretName: "t"}, on: on, fail: "not found"},
		{from: &v1alpha1.OutputCredentials{SecretName: "s"}, fail: "set the environment variable CNSBENCH_OUTPUT_ES_AUTH"},
	} {
		got, err := credentialReader{on: tt.on}.authorization(t.Context(), "output es",
			outputVariable("es", "AUTHORIZATION"), tt.from)
		if got != tt.want || (err != nil) != (tt.fail != "") {
			t.Errorf("%+v: %q, %v", tt.from, got, err)
		}
		if err != nil && (!strings.Contains(err.Error(), tt.fail) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%+v: %v", tt.from, err)
		}
	}
	t.Setenv("CNSBENCH_OUTPUT_ES_AUTHORIZATION", "Bearer x")
	got, err := credentialReader{}.authorization(t.Context(), "output es", outputVariable("es", "AUTHORIZATION"),
		&v1alpha1.OutputCredentials{SecretName: "s"})
	if got != "Bearer x" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestBucketAccount checks the sources of the keys of an S3 account, and that problems do not show a secret.
func TestBucketAccount(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"},
		Data: map[string][]byte{"accesskey": []byte("me\n"), "secretkey": []byte("hunter2"), "sessiontoken": []byte("t")}}
	half := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "half"},
		Data: map[string][]byte{"secretkey": []byte("hunter2")}}
	on := &cluster.Cluster{Namespace: "n", Set: fake.NewClientset(secret, half)}
	t.Setenv("AWS_ACCESS_KEY_ID", "usual")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter3")
	bench := func(c *v1alpha1.OutputCredentials) *v1alpha1.Benchmark {
		return &v1alpha1.Benchmark{Spec: v1alpha1.BenchmarkSpec{Outputs: []v1alpha1.Output{{Name: "my-s3",
			S3Spec: &v1alpha1.S3OutputSpec{Endpoint: "http://s3", Bucket: "b", Addressing: "virtualHost", Credentials: c}}}}}
	}
	for _, tt := range []struct {
		from *v1alpha1.OutputCredentials
		want output.Account
		fail string
	}{
		{nil, output.Account{AccessKey: "usual", SecretKey: "hunter3"}, ""},
		{&v1alpha1.OutputCredentials{SecretName: "s"},
			output.Account{AccessKey: "me", SecretKey: "hunter2", SessionToken: "t"}, ""},
		{&v1alpha1.OutputCredentials{SecretName: "half"}, output.Account{}, "want the keys accesskey and secretkey"},
		{&v1alpha1.OutputCredentials{File: "/absent"}, output.Account{}, "output my-s3: credentials: "},
	} {
		got, err := bucketsOf(t.Context(), bench(tt.from), credentialReader{on: on})
		if tt.fail != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fail) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%+v: %v", tt.from, err)
			}
			continue
		}
		if err != nil || len(got) != 1 || got[0].Account != tt.want || got[0].Settings["path_style_access"] != "false" {
			t.Errorf("%+v: %d buckets, %v", tt.from, len(got), err)
		}
	}
	t.Setenv("CNSBENCH_OUTPUT_MY_S3_ACCESSKEY", "own")
	t.Setenv("CNSBENCH_OUTPUT_MY_S3_SECRETKEY", "hunter4")
	got, err := bucketsOf(t.Context(), bench(&v1alpha1.OutputCredentials{SecretName: "absent"}), credentialReader{on: on})
	if err != nil || got[0].Account != (output.Account{AccessKey: "own", SecretKey: "hunter4"}) {
		t.Errorf("%d buckets, %v", len(got), err)
	}
}
