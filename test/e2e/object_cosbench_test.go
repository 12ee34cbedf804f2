//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// cosbenchFile is a COSBench workload with one work. The verbs stand for its storage, auth and
// operation.
const cosbenchFile = `<workload name="w">%s<workflow><workstage name="main">
<work name="main" workers="1" totalOps="10">%s</work></workstage></workflow></workload>`

const readOne = `<operation type="read" config="containers=c(1);objects=c(1)"/>`

// TestObjectLint checks that lint accepts what COSBench accepts, rejects what COSBench rejects, and
// reports ambiguous input instead of guessing.
func TestObjectLint(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for _, tt := range []struct {
		name, stores, operation string
		code                    int
		says                    string
	}{
		{"sizes without a unit", `<storage type="null"/>`,
			`<operation type="write" config="containers=c(1);objects=c(1);sizes=c(64)"/>`, 1,
			`2: sizes "c(64)": missing unit: write c(64)B for bytes, c(64)KB or c(64)KiB`},
		{"endpoint without a scheme", `<storage type="s3" config="endpoint=192.0.2.1:9000;accesskey=a;secretkey=b"/>`,
			readOne, 1,
			"has no scheme: write endpoint=http://192.0.2.1:9000, or endpoint=https://192.0.2.1:9000 for TLS"},
		{"no storage", "", readOne, 0, `2: warning: work "main" has no storage: storage none is used, as in COSBench`},
		{"other names of keys", `<storage type="swift"/>
<auth type="keystone" config="url=http://h/v3;username=u;tenname=t"/>`,
			readOne, 0, "w is valid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := b.run("validate", b.write("w.xml", fmt.Sprintf(cosbenchFile, tt.stores, tt.operation))).wants(t,
				tt.code)
			if !strings.Contains(r.stdout+r.stderr, tt.says) {
				t.Errorf("want %q\n%v", tt.says, r)
			}
		})
	}
}

// TestObjectNothingMade checks that without a server the run creates no container and reports none
// as left.
func TestObjectNothingMade(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	address := freePort(t)
	text := fmt.Sprintf(`<workload name="w">
<storage type="s3" config="endpoint=http://%s;accesskey=a;secretkey=b"/><workflow>
<workstage name="init"><work type="init" workers="2" config="containers=r(1,2)"/></workstage>
<workstage name="dispose"><work type="dispose" workers="2" config="containers=r(1,2)"/></workstage>
</workflow></workload>`, address)
	r := b.run("object", "run", "--out", b.bundle(), b.write("w.xml", text)).wants(t, 2)
	if !strings.Contains(r.stderr, "refused") || strings.Contains(r.stdout+r.stderr, "may be left") {
		t.Errorf("%v", r)
	}
	if r := b.run("cleanup", b.bundle()).wants(t, 0); strings.Contains(r.stdout+r.stderr, "may be left") {
		t.Errorf("%v", r)
	}
}

// TestObjectNoSuccess checks that a run without a successful operation is flagged, independent of
// the failures that it accepts. The bundle records and shows what limited the run.
func TestObjectNoSuccess(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	root := b.in("objects")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`<workload name="w"><storage type="file" config="root=%s"/><workflow><workstage name="main">
<work name="main" workers="1" rampup="1" runtime="2" afr="1000000">%s</work></workstage>
</workflow></workload>`, root, readOne)
	r := b.run("object", "run", "--out", b.bundle(), b.write("w.xml", text)).wants(t, 0)
	bundle, err := bundle.Open(b.bundle())
	if err != nil {
		t.Fatal(err)
	}
	raised := false
	for _, f := range bundle.Run.Validity {
		raised = raised || f.Name == "noSuccess" && f.Severity == "invalid" && strings.Contains(f.Evidence, "ENOENT")
	}
	if !raised {
		t.Errorf("no flag noSuccess: %+v\n%v", bundle.Run.Validity, r)
	}
	bounds := bundle.Run.Bounds
	if len(bounds) != 1 || bounds[0].Stage != "main" || bounds[0].Bound == "" || bounds[0].CPUPerOpNs <= 0 {
		t.Fatalf("bounds %+v\n%v", bounds, r)
	}
	page := b.in("report.html")
	b.run("report", b.bundle(), "--out", page).wants(t, 0)
	written, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	show := b.run("show", b.bundle()).wants(t, 0)
	for what, shown := range map[string]string{"show": show.stdout, "report": string(written)} {
		for _, words := range []string{"Limits of object storage", bounds[0].Bound, "noSuccess"} {
			if !strings.Contains(shown, words) {
				t.Errorf("%s lacks %q\n%s", what, words, shown[:min(len(shown), 4000)])
			}
		}
	}
	b.run("object", "run", "--strict", "--out", b.in("strict"), b.in("w.xml")).wants(t, 4)
}

// proxies is an HTTP proxy with one plain HTTP server and one TLS server, which it uses for every
// host name.
type proxies struct {
	plain *httputil.ReverseProxy
	tls   string

	mu    sync.Mutex
	asked []string
}

func (p *proxies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if asked := r.Method + " " + r.URL.Scheme + "://" + r.URL.Host + r.Host; !slices.Contains(p.asked, asked) {
		p.asked = append(p.asked, asked)
	}
	p.mu.Unlock()
	switch {
	case r.Method != http.MethodConnect && r.URL.IsAbs():
		p.plain.ServeHTTP(w, r)
	case r.Method != http.MethodConnect || r.Host == "refused.invalid:443":
		w.WriteHeader(http.StatusForbidden)
	default:
		p.tunnel(w)
	}
}

func (p *proxies) tunnel(w http.ResponseWriter) {
	server, err := net.Dial("tcp", p.tls)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer server.Close()
	w.WriteHeader(http.StatusOK)
	client, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	go func() {
		_, _ = io.Copy(server, buffered) // until the client closes
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}

// TestObjectProxy checks that with proxyhost and proxyport all requests go through the proxy, which
// alone resolves the server's name, and that a refused tunnel is reported as such.
func TestObjectProxy(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	address, _ := b.nullServer()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	over := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(target))
	defer over.Close()
	p := &proxies{plain: httputil.NewSingleHostReverseProxy(target), tls: over.Listener.Addr().String()}
	server := httptest.NewServer(p)
	defer server.Close()
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	stage := func(name, endpoint string) string {
		return fmt.Sprintf(`<workstage name="%s"><work name="%[1]s" workers="2" totalOps="20" afr="1000000">
<storage type="s3" config="endpoint=%s;accesskey=a;secretkey=b;no_verify_ssl=true;proxyhost=%s;proxyport=%s"/>
%s</work></workstage>`,
			name, endpoint, host, port, readOne)
	}
	text := `<workload name="w"><workflow>` + stage("plain", "http://store.invalid:9000") +
		stage("tls", "https://store.invalid") + stage("no", "https://refused.invalid") + `</workflow></workload>`
	r := b.run("object", "run", "--out", b.bundle(), b.write("w.xml", text)).wants(t, 0)
	sums := b.sums()
	const refused = "20 × proxy: the proxy answers to CONNECT: HTTP/1.1 403"
	if sums["read.ok"] != 40 || sums["read.failed"] != 20 || !strings.Contains(r.stderr, refused) {
		t.Errorf("%v\n%v", sums, r)
	}
	slices.Sort(p.asked)
	want := []string{"CONNECT ://refused.invalid:443refused.invalid:443",
		"CONNECT ://store.invalid:443store.invalid:443",
		"GET http://store.invalid:9000store.invalid:9000"}
	if !slices.Equal(p.asked, want) {
		t.Errorf("the proxy was asked %v, want %v", p.asked, want)
	}
	half := strings.ReplaceAll(text, ";proxyport="+port, "")
	r = b.run("validate", b.write("half.xml", half)).wants(t, 1)
	if !strings.Contains(r.stderr, "belong together") {
		t.Errorf("%v", r)
	}
	if r := b.run("convert", b.in("w.xml")).wants(t, 0); !strings.Contains(r.stdout, "proxy: http://"+host+":"+port) {
		t.Errorf("the Benchmark has no proxy\n%v", r)
	}
}
