//go:build e2e

package kubernetes

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/cnsbench/cnsbench/test/servers"
)

// bridge is the network bridge that connects the nodes of the test bed.
const bridge = "br-cnsb"

// reachable makes a server on the host's loopback reachable from pods. It returns an address on the
// nodes' bridge whose connections are forwarded until the test ends.
func (p *project) reachable(server string) (address string) {
	p.t.Helper()
	link, err := net.InterfaceByName(bridge)
	if err != nil {
		p.t.Skipf("pods reach this machine on the test bed only: %v", err)
	}
	own, err := link.Addrs()
	if err != nil || len(own) == 0 {
		p.t.Fatalf("%s has no address: %v", bridge, err)
	}
	l, err := net.Listen("tcp4", net.JoinHostPort(own[0].(*net.IPNet).IP.String(), "0"))
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	p.t.Cleanup(func() { cancel(); _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { pass(ctx, from, server) })
		}
	})
	return l.Addr().String()
}

// pass forwards a connection to a new connection to the server until one of them ends.
func pass(ctx context.Context, from net.Conn, server string) {
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp4", server)
	if err != nil {
		_ = from.Close() // the client gets an error
		return
	}
	end := sync.OnceFunc(func() { _, _ = from.Close(), to.Close() })
	defer context.AfterFunc(ctx, end)()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() { _, _ = io.Copy(way[0], way[1]); end() })
	}
	both.Wait()
}

// everyStage runs all stages with two pods and verifies the data that it reads.
const everyStage = `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  seed: 7
  actions:
    - name: objects
      createObjSpec:
        workload: object
        count: 2
        objectSpec:
          storage: %s
          stages:
            - name: init
              works: [{type: init, workers: 1, containers: "r(1,3)"}]
            - name: prepare
              works: [{type: prepare, workers: 4, containers: "r(1,3)", objects: "r(1,20)", sizes: c(16)KiB}]
            - name: main
              works:
                - {workers: 4, totalOps: 200, containers: "u(1,3)", objects: "u(1,20)", operations: [{type: read, verify: true}]}
            - name: cleanup
              works: [{type: cleanup, workers: 4, containers: "r(1,3)", objects: "r(1,20)"}]
            - name: dispose
              works: [{type: dispose, workers: 1, containers: "r(1,3)"}]
  slos:
    - {name: all, expr: 'count(objects.read) == 200.0 && count(objects["prepare.write"]) == 60.0 && count(objects["cleanup.delete"]) == 60.0'}
    - {name: none-failed, expr: 'errors(objects) == 0.0'}
`

// secret creates a Secret whose keys are file names. It is deleted at the end of the test.
func (p *project) secret(name string, keys map[string]string) {
	p.t.Helper()
	args := []string{"create", "secret", "generic", name}
	for k, v := range keys {
		args = append(args, "--from-literal="+k+"="+v)
	}
	p.kubectl(args...)
	p.t.Cleanup(func() { p.kubectl("delete", "--ignore-not-found", "secret/"+name) })
}

// testStoreOfS3 checks pods that use TLS with an S3 server that checks signatures. The keys and the
// certificate are in a Secret. The store is empty afterwards, and the bundle has no credentials.
// With wrong keys the run reports the error.
func testStoreOfS3(p *project) {
	v := servers.ForTest(p.t, servers.StartVersityTLS)
	ca, err := os.ReadFile(v.Cert)
	if err != nil {
		p.t.Fatal(err)
	}
	storage := fmt.Sprintf("{s3Spec: {endpoint: %q, caFile: /credentials/ca.crt}, credentials: {secretName: keys}}",
		"https://"+p.reachable(strings.TrimPrefix(v.Address, "https://")))
	p.secret("keys", map[string]string{"accesskey": servers.VersityKey, "secretkey": servers.VersitySecret,
		"ca.crt": string(ca)})
	c := p.command("local", fmt.Sprintf(everyStage, storage))
	p.ends(c, 0)
	// Names that start with a dot are internal to the server.
	if left, err := filepath.Glob(filepath.Join(v.Data, "[^.]*")); err != nil || len(left) > 0 {
		p.t.Errorf("left in the store: %v, %v", left, err)
	}

	const wrong = "not-to-be-found-anywhere"
	p.kubectl("delete", "secret/keys")
	p.secret("keys", map[string]string{"accesskey": servers.VersityKey, "secretkey": wrong, "ca.crt": string(ca)})
	c = p.command("local", fmt.Sprintf(everyStage, storage))
	p.ends(c, 2, "403")
	p.nowhere(c.bundle, wrong)
}

// testStoreOfSwift checks the same with Swift, where pods get a token with a password.
func testStoreOfSwift(p *project) {
	s := servers.ForTest(p.t, servers.StartSwift)
	p.secret("keys", map[string]string{"password": servers.SwiftPassword})
	c := p.command("local", fmt.Sprintf(everyStage,
		fmt.Sprintf("{swiftSpec: {authURL: %q, username: %q}, credentials: {secretName: keys}}",
			"http://"+p.reachable(strings.TrimPrefix(s.Address, "http://"))+"/auth/v1.0", servers.SwiftUser)))
	p.ends(c, 0)
	p.nowhere(c.bundle, servers.SwiftPassword)
}
