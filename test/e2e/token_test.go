package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/cnsbench/cnsbench/internal/bundle/server"
)

// The tokens of a user: the token of the kubeconfig, which has all rights of the user, and the
// token that is created for the results service.
const (
	ownToken    = "the-kubeconfigs-own"
	mintedToken = "made-for-the-results-service"
)

// fakeCluster is an API server with the results service behind it. It records what both receive.
type fakeCluster struct {
	t       *testing.T
	api     *httptest.Server
	service *httptest.Server
	refuses bool // to create tokens

	mu       sync.Mutex
	accounts []string // for which tokens were requested, as namespace/name
	requests []authenticationv1.TokenRequestSpec
	atAPI    []string // Authorization header of each request
	sent     []string // each request to the service: its request line and headers
}

func newFakeCluster(t *testing.T, store string) *fakeCluster {
	t.Helper()
	c := &fakeCluster{t: t}
	s, err := server.OpenStore(store, server.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	h := server.Handler{Store: s, Auth: server.Token(mintedToken)}
	serve := h.Serve()
	c.service = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var headers strings.Builder
		err := r.Header.Write(&headers)
		c.mu.Lock()
		c.sent = append(c.sent, fmt.Sprintf("%s %s %v\n%s", r.Method, r.URL, err, headers.String()))
		c.mu.Unlock()
		serve.ServeHTTP(w, r)
	}))
	cert, err := server.SelfSigned([]string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	c.service.TLS = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}}
	c.service.StartTLS()
	t.Cleanup(c.service.Close)
	pin := server.Pin(cert.Certificate[0])

	mux := http.NewServeMux()
	const in = "/api/v1/namespaces/cnsbench-system"
	mux.HandleFunc("GET "+in+"/pods", func(w http.ResponseWriter, _ *http.Request) { c.answer(w, c.pods()) })
	mux.HandleFunc("GET "+in+"/configmaps/cnsbench-results", func(w http.ResponseWriter, _ *http.Request) {
		c.answer(w, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			Data: map[string]string{"pin": pin}})
	})
	mux.HandleFunc("POST /api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", c.token)
	mux.HandleFunc("POST "+in+"/pods/results-0/portforward", c.forward)
	c.api = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.atAPI = append(c.atAPI, r.Header.Get("Authorization"))
		c.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(c.api.Close)
	return c
}

func (c *fakeCluster) pods() *corev1.PodList {
	service := corev1.Container{Name: "results", Ports: []corev1.ContainerPort{{ContainerPort: 8443}}}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "results-0"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{service}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady,
			Status: corev1.ConditionTrue}}}}
	return &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{pod}}
}

func (c *fakeCluster) answer(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(object); err != nil {
		c.t.Error(err)
	}
}

// token creates a token as the API server does.
func (c *fakeCluster) token(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Error(err)
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	asked, ok := object.(*authenticationv1.TokenRequest)
	if err != nil || !ok {
		c.t.Errorf("a request for a token: %T, %v", object, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accounts = append(c.accounts, r.PathValue("namespace")+"/"+r.PathValue("name"))
	c.requests = append(c.requests, asked.Spec)
	if c.refuses {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		c.answer(w, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "you may not make tokens"})
		return
	}
	asked.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"}
	asked.Status.Token = mintedToken
	c.answer(w, asked)
}

// forward connects a stream to the service as a kubelet does.
func (c *fakeCluster) forward(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		c.t.Error(err)
		return
	}
	streams := make(chan httpstream.Stream, 2)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	for {
		select {
		case s := <-streams:
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
				c.pipe(s)
				return
			}
		case <-conn.CloseChan():
			return
		}
	}
}

func (c *fakeCluster) pipe(s httpstream.Stream) {
	to, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", c.service.Listener.Addr().String())
	if err != nil {
		c.t.Error(err)
		return
	}
	done := make(chan error, 2)
	go func() {
		_, err := io.Copy(to, s)
		done <- err
	}()
	go func() {
		_, err := io.Copy(s, to)
		done <- err
	}()
	<-done
	_ = errors.Join(to.Close(), s.Reset())
	<-done
}

// kubeconfig returns a kubeconfig with the user's own token.
func (c *fakeCluster) kubeconfig() string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: %s}}]
`, c.api.URL, ownToken)
}

// forget returns the recorded data and clears it.
func (c *fakeCluster) forget() (accounts []string, requests []authenticationv1.TokenRequestSpec, atAPI, sent []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	accounts, requests, atAPI, sent = c.accounts, c.requests, c.atAPI, c.sent
	c.accounts, c.requests, c.atAPI, c.sent = nil, nil, nil, nil
	return accounts, requests, atAPI, sent
}

// TestResultsServiceGetsNoTokenOfTheKubeconfig checks that a command that reads from the results
// service sends a token that the API server created for this service only. The token of the
// kubeconfig goes only to the API server.
func TestResultsServiceGetsNoTokenOfTheKubeconfig(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	file := b.write("bench.yaml", atStart+class("null"))
	b.run("run", file, "--out", b.in("results", "team", "r1"), "--storage-dir", b.in("storage")).wants(t, 0)
	c := newFakeCluster(t, b.in("results"))
	config := b.write("kubeconfig", c.kubeconfig())
	for _, tt := range []struct {
		args    []string
		account string
	}{
		{[]string{"show"}, "team/default"},
		{[]string{"show", "--results-account", "bench"}, "team/bench"},
		{[]string{"report", "-o", b.in("page.html")}, "team/default"},
	} {
		b.run(append(tt.args, "--cluster", "team/r1", "--kubeconfig", config)...).wants(t, 0)
		accounts, requests, atAPI, sent := c.forget()
		if diff := cmp.Diff([]string{tt.account}, accounts); diff != "" {
			t.Errorf("%v: tokens were asked for: %s", tt.args, diff)
		}
		seconds := int64(600)
		want := []authenticationv1.TokenRequestSpec{{Audiences: []string{"cnsbench-results"},
			ExpirationSeconds: &seconds}}
		if diff := cmp.Diff(want, requests); diff != "" {
			t.Errorf("%v: %s", tt.args, diff)
		}
		if len(atAPI) == 0 || slices.ContainsFunc(atAPI, func(a string) bool { return a != "Bearer "+ownToken }) {
			t.Errorf("%v: the API server was sent %q", tt.args, atAPI)
		}
		for _, request := range sent {
			if !strings.Contains(request, "Authorization: Bearer "+mintedToken+"\r\n") ||
				strings.Contains(request, ownToken) {
				t.Errorf("%v: the service was sent\n%s", tt.args, request)
			}
		}
		if len(sent) == 0 {
			t.Errorf("%v: the service was asked for nothing", tt.args)
		}
	}

	c.mu.Lock()
	c.refuses = true
	c.mu.Unlock()
	r := b.run("show", "--cluster", "team/r1", "--kubeconfig", config).wants(t, 2)
	if !strings.Contains(r.stderr, "you may not make tokens") || !strings.Contains(r.stderr, "--results-account") {
		t.Errorf("does not say what to do\n%v", r)
	}
	if _, _, _, sent := c.forget(); len(sent) > 0 {
		t.Errorf("without a token of its own the service was sent %q", sent)
	}
	b.clean()
}

// TestResultsTokenInTheClear checks that a token is not sent over plain HTTP, except to the local
// host, and not to the target of a redirect.
func TestResultsTokenInTheClear(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	var mu sync.Mutex
	var elsewhere []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		elsewhere = append(elsewhere, r.Header.Get("Authorization"))
	}))
	t.Cleanup(other.Close)
	redirects := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(redirects.Close)
	token := b.private("token", mintedToken)
	for _, tt := range []struct {
		url  string
		code int
		says string
	}{
		{"http://results.example:8080", 1, "the token of --results-token-file would cross the network in the clear"},
		{"HTTP://192.0.2.1", 1, "https"},
		{redirects.URL, 2, "307"},
	} {
		for _, command := range []string{"show", "report"} {
			r := b.run(command, "--cluster", "team/r1", "--results", tt.url, "--results-token-file", token).wants(t,
				tt.code)
			if !strings.Contains(r.stderr, tt.says) {
				t.Errorf("does not say %q\n%v", tt.says, r)
			}
		}
	}
	if len(elsewhere) > 0 {
		t.Errorf("the token went where the answer redirected: %q", elsewhere)
	}

	run := []string{"run", b.write("bench.yaml", atStart+class("null")), "--storage-dir", b.in("storage")}
	b.run(append(run, "--out", filepath.Join(b.in("results"), "team", "r1"))...).wants(t, 0)
	at := freePort(t)
	s := b.start(b.cnsbench(), "serve", "--dir", b.in("results"), "--listen", at, "--auth", "token", "--token-file",
		token)
	s.reaches("results of")
	b.run("show", "--cluster", "team/r1", "--results", "http://"+at, "--results-token-file", token).wants(t, 0)
	s.kill()
	b.clean()
}
