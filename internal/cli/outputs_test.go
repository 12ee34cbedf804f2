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
		got, err := credentialReader{tt.on}.authorization(t.Context(), "output es", outputVariable("es", "AUTHORIZATION"), tt.from)
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
