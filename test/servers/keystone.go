package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Keystone is OpenStack's token service, of Debian's packages, on SQLite and
// with Fernet tokens, before a Swift that asks it who may do what.
type Keystone struct {
	group
	Swift *Swift
	// AuthURL is that of version 3. The account is KeystoneUser's, in
	// KeystoneProject, both of the domain Default.
	AuthURL string
	port    int
	token   string // of the administrator
}

// The account of those who store things.
const (
	KeystoneUser     = "tester"
	KeystonePassword = "testing"
	KeystoneProject  = "test"
)

const adminPassword = "admin"

// StartKeystone starts both; tokens live for an hour.
func StartKeystone(ctx context.Context, dir string) (*Keystone, error) {
	if err := needs("Keystone", "keystone-manage", "keystone-wsgi-public", "swift-proxy-server"); err != nil {
		return nil, err
	}
	if _, err := os.Stat("/usr/lib/python3/dist-packages/keystonemiddleware"); err != nil {
		return nil, fmt.Errorf("Swift with Keystone %w: python3-keystonemiddleware is not there: run make object-servers", ErrMissing)
	}
	free, err := Ports(2)
	if err != nil {
		return nil, err
	}
	k := &Keystone{group: group{dir: dir}, port: free[0], AuthURL: fmt.Sprintf("http://127.0.0.1:%d/v3", free[0])}
	if err := k.prepare(ctx); err != nil {
		return nil, err
	}
	err = k.serve(ctx)
	if err == nil {
		err = k.account(ctx, free[1])
	}
	if err == nil {
		k.Swift, err = k.swift(ctx, free[1])
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, k.Logs())
		k.Stop()
		return nil, err
	}
	return k, nil
}

// Stop ends both.
func (k *Keystone) Stop() {
	if k.Swift != nil {
		k.Swift.Stop()
	}
	k.group.Stop()
}

// Logs of both.
func (k *Keystone) Logs() string {
	text := k.group.Logs()
	if k.Swift != nil {
		text += k.Swift.Logs()
	}
	return text
}

func (k *Keystone) config() string { return filepath.Join(k.dir, "keystone.conf") }

// configure says where all is, and how long tokens live.
func (k *Keystone) configure(life time.Duration) error {
	return k.write("keystone.conf", `[database]
connection = sqlite:///%[1]s/keystone.db
[token]
provider = fernet
expiration = %[2]d
[fernet_tokens]
key_repository = %[1]s/fernet
[credential]
key_repository = %[1]s/credential
[fernet_receipts]
key_repository = %[1]s/fernet
[identity]
password_hash_rounds = 4
[cache]
enabled = false
`, k.dir, int(life.Seconds()))
}

// prepare makes the database, the keys and the first administrator.
func (k *Keystone) prepare(ctx context.Context) error {
	if err := k.configure(time.Hour); err != nil {
		return err
	}
	manage := []string{"keystone-manage", "--config-file", k.config()}[:3:3]
	for _, args := range [][]string{
		append(manage, "db_sync"),
		// So that a session that reads does not keep the same process from writing.
		{"/usr/bin/python3", "-c", "import sqlite3; sqlite3.connect('keystone.db').execute('PRAGMA journal_mode=WAL')"},
		append(manage, "fernet_setup", "--keystone-user", "root", "--keystone-group", "root"),
		append(manage, "bootstrap", "--bootstrap-password", adminPassword, "--bootstrap-public-url", k.AuthURL,
			"--bootstrap-internal-url", k.AuthURL, "--bootstrap-region-id", "one"),
	} {
		c := exec.CommandContext(ctx, args[0], args[1:]...)
		c.Dir = k.dir
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", args, err, out[max(0, len(out)-2000):])
		}
	}
	return nil
}

// serve runs the program that Debian's package has for the purpose, a server
// of one thread.
func (k *Keystone) serve(ctx context.Context) error {
	err := k.start("keystone", []string{"OS_KEYSTONE_CONFIG_FILES=" + k.config()}, "keystone-wsgi-public", "--host",
		"127.0.0.1", "--port", fmt.Sprint(k.port))
	if err != nil {
		return err
	}
	return k.await(ctx, "keystone", fmt.Sprintf("127.0.0.1:%d", k.port))
}

// TokensLive starts the token service anew, with another life of the tokens that
// it gives from now on, in whole seconds.
func (k *Keystone) TokensLive(ctx context.Context, life time.Duration) error {
	k.group.Stop()
	if err := k.configure(life); err != nil {
		return err
	}
	return k.serve(ctx)
}

// account registers Swift and makes the account that uses it.
func (k *Keystone) account(ctx context.Context, swiftPort int) error {
	var err error
	create := func(path, kind string, fields map[string]any) string {
		if err != nil {
			return ""
		}
		var answer map[string]struct{ ID string }
		_, err = k.ask(ctx, http.MethodPost, path, map[string]any{kind: fields}, &answer)
		return answer[kind].ID
	}
	var header http.Header
	header, err = k.ask(ctx, http.MethodPost, "/auth/tokens", map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{
			"user": map[string]any{"name": "admin", "password": adminPassword,
				"domain": map[string]string{"id": "default"}}}},
		"scope": map[string]any{"project": map[string]any{"name": "admin",
			"domain": map[string]string{"id": "default"}}},
	}}, nil)
	k.token = header.Get("X-Subject-Token")
	service := create("/services", "service", map[string]any{"type": "object-store", "name": "swift"})
	for _, i := range []string{"public", "internal"} {
		create("/endpoints", "endpoint", map[string]any{"service_id": service, "interface": i, "region_id": "one",
			"url": fmt.Sprintf("http://127.0.0.1:%d/v1/AUTH_$(project_id)s", swiftPort)})
	}
	project := create("/projects", "project", map[string]any{"name": KeystoneProject, "domain_id": "default"})
	user := create("/users", "user", map[string]any{"name": KeystoneUser, "password": KeystonePassword,
		"domain_id": "default"})
	role := create("/roles", "role", map[string]any{"name": "swiftoperator"})
	if err == nil {
		_, err = k.ask(ctx, http.MethodPut, "/projects/"+project+"/users/"+user+"/roles/"+role, nil, nil)
	}
	return err
}

// ask is one request of the administrator.
func (k *Keystone) ask(ctx context.Context, method, path string, send, answer any) (http.Header, error) {
	var content io.Reader
	if send != nil {
		b, err := json.Marshal(send)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(b)
	}
	q, err := http.NewRequestWithContext(ctx, method, k.AuthURL+path, content)
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("X-Auth-Token", k.token)
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode/100 != 2 {
		err = errors.New(string(b))
	}
	if err == nil && answer != nil {
		err = json.Unmarshal(b, answer)
	}
	if err != nil {
		return nil, fmt.Errorf("keystone %s %s: %s: %w", method, path, r.Status, err)
	}
	return r.Header, nil
}

func (k *Keystone) swift(ctx context.Context, port int) (*Swift, error) {
	dir := filepath.Join(k.dir, "swift")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	return startSwift(ctx, dir, "authtoken keystoneauth", fmt.Sprintf(`[filter:authtoken]
paste.filter_factory = keystonemiddleware.auth_token:filter_factory
www_authenticate_uri = %[1]s
auth_url = %[1]s
auth_type = password
project_domain_name = Default
user_domain_name = Default
project_name = admin
username = admin
password = %[2]s
delay_auth_decision = true
service_token_roles_required = true
cache = swift.cache
[filter:keystoneauth]
use = egg:swift#keystoneauth
operator_roles = swiftoperator
`, k.AuthURL, adminPassword), port, false)
}
