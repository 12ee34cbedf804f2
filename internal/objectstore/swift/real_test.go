package swift

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/objectstore/s3"
	"github.com/cnsbench/cnsbench/internal/objectstore/store"
	"github.com/cnsbench/cnsbench/internal/objectstore/storetest"
	"github.com/cnsbench/cnsbench/internal/op"
)

// cluster is an OpenStack Swift of one device, of Debian's packages, on
// loopback: a proxy with TempAuth and s3api, one server each for accounts,
// containers and objects, and a memcached.
type cluster struct {
	t    *testing.T
	dir  string
	port map[string]int
}

func startSwift(t *testing.T) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("a real Swift is started only without -short")
	}
	if os.Geteuid() != 0 {
		t.Skip("Swift's servers want root here")
	}
	for _, p := range []string{"swift-proxy-server", "swift-account-server", "swift-container-server", "swift-object-server", "swift-ring-builder", "memcached"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed: apt-get install swift-proxy swift-account swift-container swift-object memcached", p)
		}
	}
	c := &cluster{t: t, dir: t.TempDir(), port: map[string]int{}}
	for _, s := range []string{"account", "container", "object", "proxy", "memcached"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		c.port[s] = l.Addr().(*net.TCPAddr).Port
		defer l.Close() // until all have theirs
	}
	if err := os.MkdirAll(filepath.Join(c.dir, "devices", "d1"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.write("swift.conf", "[swift-hash]\nswift_hash_path_prefix = cnsbench\nswift_hash_path_suffix = test\n[storage-policy:0]\nname = gold\ndefault = yes\n")
	for _, s := range []string{"account", "container", "object"} {
		c.ring(s)
		c.write(s+"-server.conf", fmt.Sprintf("[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = %d\nworkers = 0\nuser = root\nswift_dir = %s\ndevices = %s/devices\nmount_check = false\nlog_address = %s/no-log\n"+
			"[pipeline:main]\npipeline = %s-server\n[app:%s-server]\nuse = egg:swift#%s\n", c.port[s], c.dir, c.dir, c.dir, s, s, s))
	}
	c.write("proxy-server.conf", fmt.Sprintf(`[DEFAULT]
bind_ip = 127.0.0.1
bind_port = %d
workers = 0
user = root
swift_dir = %s
[pipeline:main]
pipeline = catch_errors cache s3api tempauth slo dlo copy proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:%d
[filter:s3api]
use = egg:swift#s3api
s3_acl = false
check_bucket_owner = false
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
[filter:copy]
use = egg:swift#copy
`, c.port["proxy"], c.dir, c.port["memcached"]))
	return c
}

func (c *cluster) write(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) ring(server string) {
	c.t.Helper()
	builder := filepath.Join(c.dir, server+".builder")
	for _, args := range [][]string{{"create", "6", "1", "1"}, {"add", fmt.Sprintf("r1z1-127.0.0.1:%d/d1", c.port[server]), "1"}, {"rebalance"}} {
		if out, err := exec.CommandContext(c.t.Context(), "swift-ring-builder", append([]string{builder}, args...)...).CombinedOutput(); err != nil {
			c.t.Fatalf("swift-ring-builder %v: %v\n%s", args, err, out)
		}
	}
}

// start starts a server and waits until it listens; it ends with the test.
func (c *cluster) start(name, program string, args ...string) {
	c.t.Helper()
	p := exec.Command(program, args...)
	log := &strings.Builder{}
	p.Stdout, p.Stderr, p.SysProcAttr = log, log, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := p.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
		_ = p.Wait()
		if c.t.Failed() {
			c.t.Logf("%s said:\n%s", name, log.String())
		}
	})
	for range 300 {
		if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.port[name])); err == nil {
			_ = conn.Close()
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	c.t.Fatalf("%s does not listen", name)
}

// One server, two protocols: both adaptors pass the same suite against it.
func TestOpenStackSwift(t *testing.T) {
	c := startSwift(t)
	c.start("memcached", "memcached", "-u", "root", "-l", "127.0.0.1", "-p", fmt.Sprint(c.port["memcached"]))
	for _, s := range []string{"account", "container", "object", "proxy"} {
		c.start(s, "swift-"+s+"-server", filepath.Join(c.dir, s+"-server.conf"), "-v")
	}
	address := fmt.Sprintf("http://127.0.0.1:%d", c.port["proxy"])
	account := open(t, Config{AuthKind: "tempauth", Password: "testing", Auth: map[string]string{"auth_url": address + "/auth/v1.0", "username": "test:tester"}})
	foreign := func(t *testing.T, name string) {
		t.Helper()
		k, err := account.Client()
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		raw := k.(*client)
		a, err := account.tokens.get(t.Context(), t.Context())
		if err == nil {
			err = raw.connect(a)
		}
		if err != nil {
			t.Fatal(err)
		}
		var res store.Result
		raw.head("PUT", []byte(name), nil, "")
		raw.with("Content-Length", "0")
		raw.http.Send(t.Context(), &res, false)
		if res.Status/100 != 2 {
			t.Fatalf("make %s: %s", name, res.Label())
		}
	}
	t.Run("swift", func(t *testing.T) {
		storetest.Run(t, storetest.Options{Store: account, Keeps: true, PartSize: 1 << 20, Chunked: true, Foreign: foreign, Prefix: "swift"})
	})
	t.Run("s3api", func(t *testing.T) {
		s, err := s3.New(s3.Config{Settings: map[string]string{"endpoint": address}, Clock: op.NewClock(), Credentials: s3.Credentials{AccessKey: "test:tester", SecretKey: "testing"}})
		if err != nil {
			t.Fatal(err)
		}
		storetest.Run(t, storetest.Options{Store: s, Keeps: true, PartSize: 5 << 20, Foreign: foreign, Prefix: "s3api"})
	})
}
