// Package backend turns what a workload says of a store into a store: the one
// place that knows all adaptors, and where credentials come from.
package backend

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/filestore"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/nullstore"
	"github.com/cnsbench/cnsbench/internal/object/s3"
	"github.com/cnsbench/cnsbench/internal/object/selector"
	"github.com/cnsbench/cnsbench/internal/object/swift"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Opener makes stores. Credentials are, of these, the first that is there:
// what stands in the workload, what its setting "credentials" names, the
// environment.
type Opener struct {
	Clock  op.Clock
	Getenv func(string) string
}

// Store of a work.
func (o *Opener) Store(m *model.Store) (client.Store, error) {
	secrets, err := o.Secrets(m)
	if err != nil {
		return nil, err
	}
	switch m.Kind {
	case "s3":
		return s3.New(s3.Config{Settings: m.Settings, Clock: o.Clock,
			Credentials: s3.Credentials{AccessKey: secrets["accesskey"], SecretKey: secrets["secretkey"], SessionToken: secrets["sessiontoken"]}})
	case "swift":
		authenticated := m.AuthKind != "" && m.AuthKind != "none"
		switch {
		case !authenticated && m.Settings["storage_url"] != "" && secrets["token"] == "":
			return nil, fmt.Errorf("storage swift: there is no token for %s: put it into the credentials or into OS_AUTH_TOKEN", m.Settings["storage_url"])
		case authenticated && secrets["password"] == "":
			return nil, fmt.Errorf("storage swift: there is no password for %s: put it into the credentials or into OS_PASSWORD", m.Auth["username"])
		}
		return swift.New(swift.Config{Settings: m.Settings, AuthKind: m.AuthKind, Auth: m.Auth, Password: secrets["password"], Token: secrets["token"], Clock: o.Clock})
	case "file":
		return filestore.New(m.Settings, o.Clock)
	case "null":
		size := int64(4096)
		if text := m.Settings["size"]; text != "" {
			if size, err = selector.ParseBytes(text); err != nil {
				return nil, fmt.Errorf("storage null: size: %w", err)
			}
		}
		return &nullstore.Store{Size: size, Clock: o.Clock}, nil
	}
	return nil, fmt.Errorf("there is no storage %q", m.Kind)
}

// Check says what of the settings of a store cannot be. Credentials are only
// looked at if they stand in the workload. It sends nothing.
func (o *Opener) Check(m *model.Store) error {
	s := *m
	if len(s.Secrets) == 0 {
		s.Secrets = model.Secrets{"accesskey": "a", "secretkey": "a", "password": "a", "token": "a"}
	}
	_, err := o.Store(&s)
	return err
}

// variables are those of the environment that hold credentials, as other
// programs have them.
var variables = map[string]map[string]string{
	"s3":    {"accesskey": "AWS_ACCESS_KEY_ID", "secretkey": "AWS_SECRET_ACCESS_KEY", "sessiontoken": "AWS_SESSION_TOKEN"},
	"swift": {"password": "OS_PASSWORD", "token": "OS_AUTH_TOKEN"},
}

// keys of credentials.
var keys = []string{"accesskey", "secretkey", "sessiontoken", "password", "token"}

// Secrets are the credentials of a store.
func (o *Opener) Secrets(m *model.Store) (model.Secrets, error) {
	if len(m.Secrets) > 0 {
		return m.Secrets, nil
	}
	for _, settings := range []map[string]string{m.Settings, m.Auth} {
		if path := settings["credentials"]; path != "" {
			secrets, err := readSecrets(path)
			if err == nil && len(secrets) == 0 {
				err = fmt.Errorf("credentials: %s has none of %s", path, strings.Join(keys, ", "))
			}
			return secrets, err
		}
	}
	secrets := model.Secrets{}
	for key, name := range variables[m.Kind] {
		if v := o.Getenv(name); v != "" {
			secrets[key] = v
		}
	}
	return secrets, nil
}

// readSecrets reads a file of lines key=value, or a directory with a file for
// each key, as Kubernetes mounts a Secret.
func readSecrets(path string) (model.Secrets, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	secrets := model.Secrets{}
	if info.IsDir() {
		for _, key := range keys {
			b, err := os.ReadFile(filepath.Join(path, key))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("credentials: %w", err)
			}
			secrets[key] = strings.TrimSpace(string(b))
		}
		return secrets, nil
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("credentials: others may read %s: chmod 600 it", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	defer f.Close()
	lines, profiles := bufio.NewScanner(f), 0
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			if profiles++; profiles > 1 {
				return nil, fmt.Errorf("credentials: %s:%d begins a second profile: nobody says which is meant", path, n)
			}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("credentials: %s:%d is no line key=value", path, n)
		}
		if key = canonical(key); slices.Contains(keys, key) {
			secrets[key] = strings.TrimSpace(value)
		}
	}
	return secrets, lines.Err()
}

// canonical takes the names of the AWS tools too.
func canonical(key string) string {
	key = strings.ToLower(strings.TrimSpace(key))
	switch key {
	case "aws_access_key_id":
		return "accesskey"
	case "aws_secret_access_key":
		return "secretkey"
	case "aws_session_token":
		return "sessiontoken"
	case "os_password":
		return "password"
	case "os_auth_token":
		return "token"
	}
	return key
}
