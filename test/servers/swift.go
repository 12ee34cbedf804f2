package servers

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
)

// Swift is an OpenStack Swift of one device, of Debian's packages: a proxy,
// one server each for accounts, containers and objects, and a memcached.
type Swift struct {
	group
	// Address is the proxy's. With TempAuth the same one speaks S3, its keys
	// being SwiftUser and SwiftPassword, and gives tokens at AuthURL.
	Address, AuthURL string
	Certificate      // with TLS

	auth, filters string // of a proxy's configuration
	ports         []int  // of the servers behind the proxy, and of memcached
}

// TempAuth's only account, and the only storage policy.
const (
	SwiftUser     = "test:tester"
	SwiftPassword = "testing"
	SwiftPolicy   = "gold"
)

// StartSwift starts one with TempAuth and s3api.
func StartSwift(ctx context.Context, dir string) (*Swift, error) {
	return startSwift(ctx, dir, "s3api tempauth", tempAuth, 0, false)
}

// StartSwiftTLS is the same with TLS.
func StartSwiftTLS(ctx context.Context, dir string) (*Swift, error) {
	return startSwift(ctx, dir, "s3api tempauth", tempAuth, 0, true)
}

const tempAuth = `[filter:s3api]
use = egg:swift#s3api
s3_acl = false
check_bucket_owner = false
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
`

func startSwift(ctx context.Context, dir, auth, filters string, port int, secure bool) (*Swift, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("OpenStack Swift %w: its servers want root", ErrMissing)
	}
	if err := needs("OpenStack Swift", "swift-proxy-server", "swift-account-server", "swift-container-server",
		"swift-object-server", "swift-ring-builder", "memcached", "unshare"); err != nil {
		return nil, err
	}
	free, err := Ports(5)
	if err != nil {
		return nil, err
	}
	if port == 0 {
		port = free[4]
	}
	c := &Swift{group: group{dir: dir}, Address: fmt.Sprintf("http://127.0.0.1:%d", port), auth: auth, filters: filters,
		ports: free[:4]}
	if secure {
		if c.Certificate, err = newCertificate(dir); err != nil {
			return nil, err
		}
		c.Address = fmt.Sprintf("https://127.0.0.1:%d", port)
	}
	c.AuthURL = c.Address + "/auth/v1.0"
	if err := c.configure(ctx, port); err != nil {
		return nil, err
	}
	if err := c.startAll(ctx, port); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// Peer starts another proxy server of the same accounts, without TLS. The cluster must have none either.
func (c *Swift) Peer(ctx context.Context, dir string) (*Swift, error) {
	free, err := Ports(1)
	if err != nil {
		return nil, err
	}
	p := *c
	p.group, p.Address = group{dir: dir}, fmt.Sprintf("http://127.0.0.1:%d", free[0])
	p.AuthURL = p.Address + "/auth/v1.0"
	err = p.configureProxy(c.dir, free[0])
	if err == nil {
		err = p.startServer(c.dir, "proxy")
	}
	if err == nil {
		err = p.await(ctx, "the proxy", fmt.Sprintf("127.0.0.1:%d", free[0]))
	}
	if err != nil {
		p.Stop()
		return nil, err
	}
	return &p, nil
}

// Token asks for one of SwiftUser's, and where its account is.
func (c *Swift) Token(ctx context.Context) (token, storageURL string, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, c.AuthURL, nil)
	if err != nil {
		return "", "", err
	}
	q.Header.Set("X-Auth-User", SwiftUser)
	q.Header.Set("X-Auth-Key", SwiftPassword)
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return "", "", err
	}
	defer a.Body.Close()
	if token, storageURL = a.Header.Get("X-Auth-Token"), a.Header.Get("X-Storage-Url"); token == "" ||
		storageURL == "" {
		return "", "", fmt.Errorf("Swift gave no token: %s", a.Status)
	}
	return token, storageURL, nil
}

// backends are the servers behind the proxy, in the order of their ports.
var backends = []string{"account", "container", "object"}

func (c *Swift) configure(ctx context.Context, port int) error {
	if err := os.MkdirAll(filepath.Join(c.dir, "devices", "d1"), 0o755); err != nil {
		return err
	}
	err := c.write("swift.conf", "[swift-hash]\nswift_hash_path_prefix = cnsbench\nswift_hash_path_suffix = test\n[storage-policy:0]\nname = %s\ndefault = yes\n", SwiftPolicy)
	if err != nil {
		return err
	}
	for i, s := range backends {
		if err := c.ring(ctx, s, c.ports[i]); err != nil {
			return err
		}
		err := c.write(s+"-server.conf", `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = %d
workers = 0
user = root
swift_dir = %[2]s
devices = %[2]s/devices
mount_check = false
log_address = %[2]s/no-log
[pipeline:main]
pipeline = %[3]s-server
[app:%[3]s-server]
use = egg:swift#%[3]s
`, c.ports[i], c.dir, s)
		if err != nil {
			return err
		}
	}
	return c.configureProxy(c.dir, port)
}

// configureProxy writes the configuration of a proxy server, for a cluster of that directory.
func (c *Swift) configureProxy(cluster string, port int) error {
	tls := ""
	if c.Cert != "" {
		tls = fmt.Sprintf("cert_file = %s\nkey_file = %s\n", c.Cert, c.Key)
	}
	return c.write("proxy-server.conf", `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = %d
workers = 0
user = root
swift_dir = %s
%s[pipeline:main]
pipeline = catch_errors cache bulk %s copy slo dlo versioned_writes symlink proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:bulk]
use = egg:swift#bulk
[filter:versioned_writes]
use = egg:swift#versioned_writes
allow_object_versioning = true
[filter:symlink]
use = egg:swift#symlink
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:%d
# Tokens are there. With two connections, as by default, hundreds of requests wait
# for one too long, and then nobody is given a token until a minute is over.
memcache_max_connections = 256
error_suppression_interval = 0
connect_timeout = 5
pool_timeout = 5
io_timeout = 10
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
[filter:copy]
use = egg:swift#copy
%s`, port, cluster, tls, c.auth, c.ports[3], c.filters)
}

func (c *Swift) ring(ctx context.Context, server string, port int) error {
	builder := filepath.Join(c.dir, server+".builder")
	for _, args := range [][]string{{"create", "6", "1", "1"}, {"add", fmt.Sprintf("r1z1-127.0.0.1:%d/d1", port), "1"},
		{"rebalance"}} {
		if out, err := exec.CommandContext(ctx, "swift-ring-builder",
			append([]string{builder}, args...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("swift-ring-builder %v: %w\n%s", args, err, out)
		}
	}
	return nil
}

// ownSettings starts a server for which a file stands at /etc/swift/swift.conf:
// hashes and policies are read from that place only, and are to be ours. It lets
// go of other people's loop devices, which its copies of their mounts would keep
// busy.
const ownSettings = `mount --bind "$1" /etc/swift/swift.conf
tac /proc/mounts | while read -r device at rest; do
	case $device in /dev/loop*) umount -l "$at" || true ;; esac
done
exec "$2" "$3" -v`

// startAll starts all at once and waits for each: Python takes its time.
func (c *Swift) startAll(ctx context.Context, port int) error {
	if err := c.start("memcached", nil, "memcached", "-u", "root", "-l", "127.0.0.1", "-p",
		fmt.Sprint(c.ports[3])); err != nil {
		return err
	}
	for _, s := range append([]string{"proxy"}, backends...) {
		if err := c.startServer(c.dir, s); err != nil {
			return err
		}
	}
	for i, s := range append(backends[:3:3], "memcached") {
		if err := c.await(ctx, s, fmt.Sprintf("127.0.0.1:%d", c.ports[i])); err != nil {
			return err
		}
	}
	return c.await(ctx, "the proxy", fmt.Sprintf("127.0.0.1:%d", port))
}

// startServer starts a server of the cluster of a directory.
func (c *Swift) startServer(cluster, name string) error {
	return c.start(name, nil, "unshare", "-m", "sh", "-ec", ownSettings, "sh", filepath.Join(cluster, "swift.conf"),
		"swift-"+name+"-server", filepath.Join(c.dir, name+"-server.conf"))
}
