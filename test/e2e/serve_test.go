package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/bundle/server"
	"github.com/cnsbench/cnsbench/test/servers"
)

// freePort returns an unused port.
func freePort(t *testing.T) string {
	t.Helper()
	ports, err := servers.Ports(1)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0])
}

// tree returns the content of all files of a bundle by path.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestResultsServiceIsKilled checks that a bundle is copied to a results service while it grows,
// although the service is killed twice, and that the copy is identical to the bundle.
func TestResultsServiceIsKilled(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	at := freePort(t)
	service := func() *live {
		l := b.start(b.cnsbench(), "serve", "--dir", b.in("results"), "--listen", at)
		l.reaches("results of")
		return l
	}
	s := service()
	file := b.write("bench.yaml", `apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: served}
spec:
  runtime: 10m
  actions: [{name: v, rateName: r, createObjSpec: {volume: {storageClass: "null", size: 1Mi}}}]
  rates: [{name: r, poissonRateSpec: {perSecond: 50}}]
`)
	run := b.start(b.cnsbench(), b.runArgs(file)...)
	run.until("there is a bundle", func() bool { return b.has("bundle/run.json") })
	remote, err := (&server.Client{URL: "http://" + at}).Run("team", "r1")
	if err != nil {
		t.Fatal(err)
	}
	push, err := server.StartPush(t.Context(), b.bundle(), remote,
		server.Options{Every: 20 * time.Millisecond, MaxBackoff: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		run.until("ops are at the service", func() bool {
			st, err := os.Stat(b.in("results", "team", "r1", "events", "000001.seg"))
			return err == nil && st.Size() > int64(i)*20_000
		})
		if i == 0 {
			show := b.run("show", "--cluster", "team/r1", "--results", "http://"+at, "--events").wants(t, 0)
			if !strings.Contains(show.stderr, "still going on") || !strings.Contains(show.stdout, `"action":"v"`) {
				t.Errorf("%v", show)
			}
		}
		s.kill()
		recorded := b.recorded()
		run.until("more is recorded while the service is down", func() bool { return b.recorded() > recorded })
		s = service()
	}
	run.signal(os.Interrupt) // only now, because the run has to outlast both kills on a slow host
	if r := run.wait(); r.code != 130 {
		t.Fatalf("%v", r)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := push.Finish(ctx); err != nil {
		t.Fatal(err)
	}
	there := b.in("results", "team", "r1")
	if diff := cmp.Diff(tree(t, b.bundle()), tree(t, there)); diff != "" {
		t.Errorf("the copy differs: %.2000s", diff)
	}
	b.run("show", "--verify", there).wants(t, 0)
	for _, args := range [][]string{{"show", "--verify"}, {"show", "--output", "json"},
		{"report", "-o", b.in("page.html")}} {
		b.run(append(args, "--cluster", "team/r1", "--results", "http://"+at)...).wants(t, 0)
	}
	if r := b.run("show", "--cluster", "team/r2", "--results", "http://"+at).wants(t, 2); !strings.Contains(r.stderr,
		"run not found") {
		t.Errorf("%v", r)
	}
	s.signal(os.Interrupt)
	if r := s.wait(); r.code != 0 {
		t.Errorf("%v", r)
	}
	b.clean()
}

func (b *box) has(name string) bool {
	_, err := os.Stat(b.in(name))
	return err == nil
}

// TestServeTLS checks that clients reject a service with an unknown certificate or a wrong pin,
// that the service requires the token and rejects old TLS versions, and that invalid flags are
// reported.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	at := freePort(t)
	token, open := b.private("token", "secret\n"), b.write("open", "secret\n")
	s := b.start(b.cnsbench(), "serve", "--dir", b.in("results"), "--listen", at, "--tls-self-signed", "--auth",
		"token", "--token-file", token)
	s.reaches("results of")
	_, pin, _ := strings.Cut(s.errs.String(), "pin: ")
	pin, _, _ = strings.Cut(pin, "\n")
	args := []string{"show", "--cluster", "team/r1", "--results", "https://" + at}
	for _, tt := range []struct {
		more []string
		want string
	}{
		{nil, "certificate"},
		{[]string{"--results-pin", "sha256:" + strings.Repeat("0", 64), "--results-token-file", token},
			"has the pin " + pin},
		{[]string{"--results-pin", pin}, "bearer token"},
		{[]string{"--results-pin", pin, "--results-token-file", token}, "run not found"},
		{[]string{"--results-pin", pin, "--results-token-file", open}, "chmod 600"},
	} {
		if r := b.run(append(args, tt.more...)...).wants(t, 2); !strings.Contains(r.stderr, tt.want) {
			t.Errorf("want %q: %v", tt.want, r)
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true,
		MaxVersion: tls.VersionTLS12}}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+at+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := client.Do(req); err == nil {
		resp.Body.Close()
		t.Error("an old TLS is good enough")
	}
	s.kill()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--listen", "0.0.0.0:0"}, "--auth none on 0.0.0.0:0"},
		{[]string{"--auth", "some"}, `--auth "some"`},
		{[]string{"--auth", "token"}, "--token-file"},
		{[]string{"--auth", "token", "--token-file", open}, "chmod 600"},
		{[]string{"--tls-cert", token}, "--tls-key"},
		{[]string{"--tls-cert", token, "--tls-key", token}, "--tls-cert"},
		{[]string{"--max-bundle", "0"}, "--max-bundle 0"},
		{[]string{"--listen", "\x1b[2J:0"}, `on \x1b[2J:0`}, // printed in escaped form
	} {
		r := b.run(append([]string{"serve", "--dir", b.in("other")}, tt.args...)...).wants(t, 1)
		if !strings.Contains(r.stderr, tt.want) {
			t.Errorf("%v: %v", tt.args, r)
		}
	}
	if r := b.run("serve", "--dir", b.in("other"), "--listen", "localhost:nowhere").wants(t,
		2); !strings.Contains(r.stderr, "--listen") {
		t.Error(fmt.Sprint(r))
	}
}

// TestServeQueueOfOthers checks that a user of this machine who does not know the address that serve has printed can
// neither read nor run anything, and that the owner can.
func TestServeQueueOfOthers(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	if err := os.Mkdir(b.in("results"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := b.start(b.cnsbench(), "serve", b.in("results"), "--listen", "127.0.0.1:0", "--allow-run")
	s.reaches("?token=")
	printed := regexp.MustCompile(`http://\S+`).FindString(s.out.String())
	address, err := url.Parse(printed)
	if err != nil {
		t.Fatal(err)
	}
	bare := "http://" + address.Host
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser, stranger := &http.Client{Jar: jar}, &http.Client{}
	body := `{"text":` + strconv.Quote(head+"spec: {}\n") + `,"engine":"local"}`
	for _, tt := range []struct {
		who    *http.Client
		method string
		at     string
		want   int
	}{
		{stranger, "GET", bare + "/", 401},
		{stranger, "GET", bare + "/?token=guess", 401},
		{stranger, "GET", bare + "/api/v1/queue", 401},
		{stranger, "POST", bare + "/api/v1/queue", 401},
		{browser, "GET", bare + "/", 401},
		{browser, "GET", printed, 200},
		{browser, "GET", bare + "/api/v1/queue", 200},
		{browser, "POST", bare + "/api/v1/queue", 422}, // the file is incomplete
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, tt.at, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := tt.who.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tt.want || resp.Request.URL.RawQuery != "" && tt.want == 200 {
			t.Errorf("%s %s: %d at %s, want %d", tt.method, tt.at, resp.StatusCode, resp.Request.URL, tt.want)
		}
	}
	s.kill()
}
