// Package backend has the kinds of object storage, a Descriptor each, opens their stores, and finds their
// credentials. No other package compares the name of a kind.
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
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/spread"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Opener opens stores. Credentials come from the first of: the workload, the file that its setting "credentials"
// names, the environment.
type Opener struct {
	Clock  op.Clock
	Getenv func(string) string

	healths spread.Healths // of the endpoints of all its stores
}

// Store of a work.
func (o *Opener) Store(m *model.Store) (client.Store, error) {
	secrets, err := o.Secrets(m)
	if err != nil {
		return nil, err
	}
	if d := Find(m.Kind); d != nil {
		st, err := d.Open(m, secrets, o.Clock)
		if err != nil {
			return nil, err
		}
		if s, ok := st.(*spread.Store); ok {
			s.Share(&o.healths)
		}
		return st, nil
	}
	return nil, fmt.Errorf("there is no storage %q: there are %s", m.Kind, strings.Join(Types(), ", "))
}

// Check validates the settings of a store. It checks credentials only if they are in the workload, and sends nothing.
func (o *Opener) Check(m *model.Store) error {
	s := *m
	if len(s.Secrets) == 0 {
		s.Secrets = model.Secrets{}
		for _, key := range SecretKeys() {
			s.Secrets[key] = "a"
		}
	}
	_, err := o.Store(&s)
	return err
}

// SecretKeys are the keys of credentials, of all kinds of storage.
func SecretKeys() (keys []string) {
	for _, d := range All() {
		for _, v := range d.Variables {
			keys = append(keys, v.Key)
		}
	}
	return keys
}

// Secrets are the credentials of a store.
func (o *Opener) Secrets(m *model.Store) (model.Secrets, error) {
	if len(m.Secrets) > 0 {
		return m.Secrets, nil
	}
	for _, settings := range []map[string]string{m.Settings, m.Auth} {
		if path := settings["credentials"]; path != "" {
			secrets, err := readSecrets(path)
			if err == nil && len(secrets) == 0 {
				err = fmt.Errorf("credentials: %s has none of %s", path, strings.Join(SecretKeys(), ", "))
			}
			return secrets, err
		}
	}
	secrets := model.Secrets{}
	if d := Find(m.Kind); d != nil {
		for _, v := range d.Variables {
			if value := o.Getenv(v.Name); value != "" {
				secrets[v.Key] = value
			}
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
		for _, key := range SecretKeys() {
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
		return nil, fmt.Errorf("credentials: %s is readable by others: chmod 600 it", path)
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
				return nil, fmt.Errorf("credentials: %s:%d: second profile: keep only one", path, n)
			}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("credentials: %s:%d: want key=value", path, n)
		}
		if key = canonical(key); slices.Contains(SecretKeys(), key) {
			secrets[key] = strings.TrimSpace(value)
		}
	}
	return secrets, lines.Err()
}

// canonical turns the name of a variable of the environment into the key that it holds.
func canonical(key string) string {
	key = strings.TrimSpace(key)
	for _, d := range All() {
		for _, v := range d.Variables {
			if strings.EqualFold(v.Name, key) {
				return v.Key
			}
		}
	}
	return strings.ToLower(key)
}
