package swift

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/s3"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/clienttest"
	"github.com/cnsbench/cnsbench/test/servers"
)

// One server, two protocols: both adaptors pass the same suite against it.
func TestOpenStackSwift(t *testing.T) {
	if testing.Short() {
		t.Skip("a real Swift is started only without -short")
	}
	c := servers.ForTest(t, servers.StartSwift)
	account := open(t, Config{AuthKind: "tempauth", Password: servers.SwiftPassword,
		Auth: map[string]string{"auth_url": c.AuthURL, "username": servers.SwiftUser}})
	foreign := func(t *testing.T, name string) {
		t.Helper()
		k, err := account.Client()
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		raw := k.(*adapter)
		a, err := account.tokens.get(t.Context(), t.Context())
		if err == nil {
			err = raw.connect(a)
		}
		if err != nil {
			t.Fatal(err)
		}
		var res client.Result
		raw.head("PUT", []byte(name), nil, "")
		raw.with("Content-Length", "0")
		raw.http.Send(t.Context(), &res, false)
		if res.Status/100 != 2 {
			t.Fatalf("make %s: %s", name, res.Label())
		}
	}
	t.Run("swift", func(t *testing.T) {
		clienttest.Run(t, clienttest.Options{Store: account, Keeps: true, PartSize: 1 << 20, Chunked: true,
			Foreign: foreign, Prefix: "swift"})
	})
	t.Run("offers", func(t *testing.T) {
		clienttest.Offers(t, clienttest.Options{Store: account, Keeps: true, PartSize: 1 << 20, Prefix: "offers"}, "Swift")
	})
	t.Run("s3api", func(t *testing.T) {
		s, err := s3.New(s3.Config{Settings: map[string]string{"endpoint": c.Address}, Clock: op.NewClock(),
			Credentials: s3.Credentials{AccessKey: servers.SwiftUser, SecretKey: servers.SwiftPassword}})
		if err != nil {
			t.Fatal(err)
		}
		clienttest.Run(t, clienttest.Options{Store: s, Keeps: true, PartSize: 5 << 20, Foreign: foreign,
			Prefix: "s3api"})
		clienttest.Offers(t, clienttest.Options{Store: s, Keeps: true, PartSize: 5 << 20, Prefix: "s3offers"},
			"Swift, s3api")
	})
}
