package backend

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

func write(t *testing.T, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhereCredentialsComeFrom(t *testing.T) {
	dir, mounted := t.TempDir(), t.TempDir()
	file := write(t, dir, "credentials", "[default]\n# of the tests\naws_access_key_id = "+
		"FILE\naws_secret_access_key=abc=\n", 0o600)
	write(t, mounted, "accesskey", "MOUNTED\n", 0o644)
	write(t, mounted, "secretkey", "xyz\n", 0o644)
	env := map[string]string{"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "e"}
	tests := []struct {
		name     string
		settings map[string]string
		secrets  model.Secrets
		want     model.Secrets
	}{
		{"the workload before all", map[string]string{"credentials": file},
			model.Secrets{"accesskey": "XML", "secretkey": "x"}, model.Secrets{"accesskey": "XML", "secretkey": "x"}},
		{"a file before the environment", map[string]string{"credentials": file}, nil,
			model.Secrets{"accesskey": "FILE", "secretkey": "abc="}},
		{"a mounted Secret", map[string]string{"credentials": mounted}, nil,
			model.Secrets{"accesskey": "MOUNTED", "secretkey": "xyz"}},
		{"the environment", nil, nil, model.Secrets{"accesskey": "ENV", "secretkey": "e"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := Opener{Clock: op.NewClock(), Getenv: func(name string) string { return env[name] }}
			got, err := o.Secrets(&model.Store{Kind: "s3", Settings: tt.settings, Secrets: tt.secrets})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(maps.Collect(maps.All(tt.want)), maps.Collect(maps.All(got))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCredentialsThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	for name, path := range map[string]string{
		"readable by others": write(t, dir, "open", "accesskey=a\n", 0o644),
		"want key=value":     write(t, dir, "odd", "accesskey a\n", 0o600),
		"no such file":       filepath.Join(dir, "none"),
		"group is readable":  write(t, dir, "group", "accesskey=a\n", 0o640),
		"has none of acc":    write(t, dir, "typing", "acesskey=a\nsecret_key=b\n", 0o600),
		"has none of":        t.TempDir(),
		"profiles:5: second": write(t, dir, "profiles",
			"[default]\naccesskey=a\nsecretkey=b\n\n[other]\naccesskey=c\nsecretkey=d\n", 0o600),
	} {
		o := Opener{Getenv: os.Getenv}
		if _, err := o.Store(&model.Store{Kind: "s3", Settings: map[string]string{"endpoint": "http://h",
			"credentials": path}}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKinds(t *testing.T) {
	o := Opener{Clock: op.NewClock(), Getenv: func(string) string { return "" }}
	for kind, settings := range map[string]map[string]string{
		"s3": {"endpoint": "http://h:1"}, "file": {"root": t.TempDir()}, "null": {"size": "64KB"},
		"swift": {"storage_url": "http://h/v1/a"},
	} {
		s, err := o.Store(&model.Store{Kind: kind, Settings: settings, Secrets: model.Secrets{"token": "t"}})
		if kind == "s3" {
			s, err = o.Store(&model.Store{Kind: kind, Settings: settings})
		}
		if err != nil || !strings.HasPrefix(s.Describe(), kind) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for _, bad := range []model.Store{{Kind: "ampli"}, {Kind: "null", Settings: map[string]string{"size": "big"}},
		{Kind: "s3"}, {Kind: "file"}} {
		if _, err := o.Store(&bad); err == nil {
			t.Errorf("%+v was opened", bad)
		}
	}
}

// Without a password nobody need ask for a token.
func TestNoPassword(t *testing.T) {
	o := Opener{Clock: op.NewClock(), Getenv: func(string) string { return "" }}
	m := &model.Store{Kind: "swift", AuthKind: "tempauth",
		Auth: map[string]string{"auth_url": "http://h/auth/v1.0", "username": "somebody"}}
	if _, err := o.Store(m); err == nil || !strings.Contains(err.Error(), "no password for somebody") {
		t.Error(err)
	}
	if err := o.Check(m); err != nil {
		t.Error(err)
	}
}

// Without an auth the token is a credential like others: of the file, of a
// directory or of the environment, in this order.
func TestTokens(t *testing.T) {
	mounted := t.TempDir()
	write(t, mounted, "token", "MOUNTED\n", 0o644)
	file := write(t, t.TempDir(), "keys", "OS_AUTH_TOKEN=FILE\n", 0o600)
	for _, tt := range []struct{ name, from, env, want string }{
		{"a file", file, "ENV", "FILE"}, {"a mounted Secret", mounted, "ENV", "MOUNTED"},
		{"the environment", "", "ENV", "ENV"}, {"nothing", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Opener{Clock: op.NewClock(),
				Getenv: func(name string) string { return map[string]string{"OS_AUTH_TOKEN": tt.env}[name] }}
			m := &model.Store{Kind: "swift", AuthKind: "none",
				Settings: map[string]string{"storage_url": "http://h/v1/AUTH_a", "credentials": tt.from}}
			secrets, err := o.Secrets(m)
			if err != nil || secrets["token"] != tt.want {
				t.Errorf("%q, want %q: %v", secrets["token"], tt.want, err)
			}
			if _, err := o.Store(m); tt.want != "" && err != nil || tt.want == "" &&
				(err == nil || !strings.Contains(err.Error(), "no token for http://h/v1/AUTH_a")) {
				t.Error(err)
			}
		})
	}
}

// TestCheck: settings that cannot be are found before anything is sent, missing
// credentials are none of them.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	tempauth := map[string]string{"auth_url": "http://h/auth/v1.0", "username": "u"}
	for _, tt := range []struct {
		name, want string
		store      model.Store
	}{
		{"S3", "", model.Store{Kind: "s3", Settings: map[string]string{"endpoint": "http://h"}}},
		{"Swift", "", model.Store{Kind: "swift", AuthKind: "tempauth", Auth: tempauth}},
		{"files", "", model.Store{Kind: "file", Settings: map[string]string{"root": dir}}},
		{"a file of credentials that is elsewhere", "", model.Store{Kind: "s3",
			Settings: map[string]string{"endpoint": "http://h", "credentials": "/elsewhere"}}},
		{"a port", "invalid port 170700 of address", model.Store{Kind: "s3",
			Settings: map[string]string{"endpoint": "http://h:170700"}}},
		{"port 0", "want 1 to 65535", model.Store{Kind: "s3", Settings: map[string]string{"endpoint": "https://h:0"}}},
		{"a timeout", "timeout", model.Store{Kind: "s3",
			Settings: map[string]string{"endpoint": "http://h", "timeout": "abc"}}},
		{"a timeout of Swift", "timeout", model.Store{Kind: "swift", AuthKind: "tempauth", Auth: tempauth,
			Settings: map[string]string{"timeout": "-1"}}},
		{"a signature", "signature=v5: there are v4 and v2",
			model.Store{Kind: "s3", Settings: map[string]string{"endpoint": "http://h", "signature": "v5"}}},
		{"half of the credentials", "belong together", model.Store{Kind: "s3",
			Settings: map[string]string{"endpoint": "http://h"}, Secrets: model.Secrets{"accesskey": "a"}}},
		{"certificates", "cafile", model.Store{Kind: "s3",
			Settings: map[string]string{"endpoint": "https://h", "cafile": "/elsewhere"}}},
		{"no directory", "root", model.Store{Kind: "file", Settings: map[string]string{"root": dir + "/none"}}},
		{"sync", "sync=always", model.Store{Kind: "file", Settings: map[string]string{"root": dir, "sync": "always"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Opener{Clock: op.NewClock(), Getenv: func(string) string { return "" }}
			switch err := o.Check(&tt.store); {
			case tt.want == "" && err != nil, tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
