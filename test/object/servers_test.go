package object

import (
	"fmt"
	"testing"
	"time"

	swiftsdk "github.com/ncw/swift/v2"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/s3"
	"github.com/cnsbench/cnsbench/internal/object/swift"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/clienttest"
	"github.com/cnsbench/cnsbench/test/servers"
)

func s3Store(t *testing.T, address, access, secret string, settings ...string) client.Store {
	t.Helper()
	all := map[string]string{"endpoint": address}
	for i := 0; i < len(settings); i += 2 {
		all[settings[i]] = settings[i+1]
	}
	s, err := s3.New(s3.Config{Settings: all, Clock: op.NewClock(),
		Credentials: s3.Credentials{AccessKey: access, SecretKey: secret}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func swiftStore(t *testing.T, kind, password string, auth map[string]string) client.Store {
	t.Helper()
	s, err := swift.New(swift.Config{Settings: map[string]string{}, AuthKind: kind, Auth: auth, Password: password,
		Clock: op.NewClock()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestVersityGW(t *testing.T) {
	v := servers.ForTest(t, servers.StartVersity)
	sdk := newAmazon(v.Address, servers.VersityKey, servers.VersitySecret)
	for _, payload := range []string{"unsigned", "signed"} {
		t.Run(payload, func(t *testing.T) {
			bothWays(t, s3Store(t, v.Address, servers.VersityKey, servers.VersitySecret, "payload", payload), sdk,
				"both-"+payload)
		})
	}
	// It refuses version 2 on purpose.
	t.Run("version 2", func(t *testing.T) {
		c, err := s3Store(t, v.Address, servers.VersityKey, servers.VersitySecret, "signature", "v2").Client()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var res client.Result
		c.Do(t.Context(), &client.Request{Verb: client.Get, Container: []byte("both-signed"), Object: []byte("plain"),
			Length: -1}, &res)
		if res.Label() != "403 AccessDenied" {
			t.Errorf("%s %s", res.Label(), res.Detail)
		}
	})
}

// The SDK by paths, ours by names of hosts.
func TestVersityGWByHostNames(t *testing.T) {
	v := servers.ForTest(t, servers.StartVersityHosts)
	bothWays(t, s3Store(t, v.Address, servers.VersityKey, servers.VersitySecret, "path_style_access", "false"),
		newAmazon(v.Address, servers.VersityKey, servers.VersitySecret), "both-hosts")
}

func TestSwift(t *testing.T) {
	t.Parallel() // most of the time its servers start
	s := servers.ForTest(t, servers.StartSwift)
	sdk := newAmazon(s.Address, servers.SwiftUser, servers.SwiftPassword)
	for _, signature := range []string{"v4", "v2"} {
		t.Run("s3api "+signature, func(t *testing.T) {
			bothWays(t, s3Store(t, s.Address, servers.SwiftUser, servers.SwiftPassword, "signature", signature), sdk,
				"s3-"+signature)
		})
	}
	t.Run("TempAuth", func(t *testing.T) {
		ours := swiftStore(t, "tempauth", servers.SwiftPassword,
			map[string]string{"auth_url": s.AuthURL, "username": servers.SwiftUser})
		bothWays(t, ours, ncw{&swiftsdk.Connection{UserName: servers.SwiftUser, ApiKey: servers.SwiftPassword,
			AuthUrl: s.AuthURL, AuthVersion: 1}}, "swift")
	})
}

func TestRadosGateway(t *testing.T) {
	t.Parallel() // most of the time its servers start
	r := servers.ForTest(t, servers.StartRados)
	sdk := newAmazon(r.Address, servers.VersityKey, servers.VersitySecret)
	for _, signature := range []string{"v4", "v2"} {
		t.Run(signature, func(t *testing.T) {
			ours := s3Store(t, r.Address, servers.VersityKey, servers.VersitySecret, "signature", signature)
			bothWays(t, ours, sdk, "both-"+signature)
			clienttest.Run(t, clienttest.Options{Store: ours, Keeps: true, PartSize: 5 << 20,
				Prefix: "suite-" + signature + "-"})
		})
	}
	t.Run("offers", func(t *testing.T) {
		clienttest.Offers(t, clienttest.Options{Store: s3Store(t, r.Address, servers.VersityKey, servers.VersitySecret),
			Keeps: true, PartSize: 5 << 20, Prefix: "offers-"}, "RADOS gateway 16")
	})
}

// A real Keystone, which a real Swift asks.
func TestKeystone(t *testing.T) {
	t.Parallel() // most of the time its servers start
	k := servers.ForTest(t, servers.StartKeystone)
	auth := map[string]string{"auth_url": k.AuthURL, "username": servers.KeystoneUser,
		"project_name": servers.KeystoneProject, "region": "one"}
	ours := swiftStore(t, "keystonev3", servers.KeystonePassword, auth)
	t.Run("both ways", func(t *testing.T) {
		bothWays(t, ours, ncw{&swiftsdk.Connection{UserName: servers.KeystoneUser, ApiKey: servers.KeystonePassword,
			AuthUrl: k.AuthURL, Domain: "Default",
			Tenant: servers.KeystoneProject, AuthVersion: 3}}, "keystone")
	})
	t.Run("wrong password", func(t *testing.T) {
		c, err := swiftStore(t, "keystonev3", "wrong", auth).Client()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var res client.Result
		if c.Do(t.Context(), &client.Request{Verb: client.Head, Container: []byte("keystone"), Object: []byte("plain")},
			&res); res.Label() != "401 NoToken" {
			t.Errorf("%s %s", res.Label(), res.Detail)
		}
	})
	const life = 6 * time.Second
	if err := k.TokensLive(t.Context(), life); err != nil {
		t.Fatal(err)
	}
	t.Run("expired tokens are renewed", func(t *testing.T) {
		renewed(t,
			swiftStore(t, "keystonev3", servers.KeystonePassword, auth), life)
	})
}

// renewed writes for longer than tokens live: each that has expired is renewed
// within the operation that met it, which says that it took two attempts.
func renewed(t *testing.T, s client.Store, life time.Duration) {
	c, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	attempts := map[int]int{}
	for end := time.Now().Add(2*life + life/2); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var res client.Result
		r := client.Request{Verb: client.Put, Container: []byte("keystone"), Object: []byte("again"), Size: 4096,
			Writer: 1}
		if c.Do(t.Context(), &r, &res); !res.OK() {
			t.Fatalf("%s %s after %v", res.Label(), res.Detail, attempts)
		}
		attempts[res.Attempts]++
	}
	if attempts[2] < 2 || attempts[1] <= attempts[2] || len(attempts) != 2 {
		t.Errorf("writes by their attempts: %v, want some that took two", fmt.Sprint(attempts))
	}
}
