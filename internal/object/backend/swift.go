package backend

import (
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/spread"
	"github.com/cnsbench/cnsbench/internal/object/swift"
	"github.com/cnsbench/cnsbench/internal/op"
)

var swiftStorage = Descriptor{
	Kind:       "swift",
	Keys:       slices.Concat([]string{"storage_url", "policy", "token"}, httpKeys, spread.Keys),
	Auth:       true,
	Variables:  []Variable{{"password", "OS_PASSWORD"}, {"token", "OS_AUTH_TOKEN"}},
	Credential: swiftCredential,
	Traits:     model.Traits{Chunked: model.ChunkedAccepted},
	Check: func(m *model.Store, storageHas, authHas func(string) bool) []Finding {
		switch authenticated := m.Authenticated(); {
		case !authenticated && !storageHas("storage_url"):
			return []Finding{{Message: "storage swift does not say how to get a token",
				Hint: `give <auth type="tempauth" …>, or storage_url and a token, which may be among the credentials`}}
		case authenticated && !authHas("auth_url"):
			return []Finding{{Auth: true, Message: fmt.Sprintf("auth %s does not say where it is", m.AuthKind),
				Hint: "such as auth_url=http://HOST:PORT" + authPaths[m.AuthKind]}}
		case authenticated && !authHas("username"):
			return []Finding{{Auth: true, Message: fmt.Sprintf("auth %s does not say whom it is for", m.AuthKind),
				Hint: "username=…"}}
		}
		return nil
	},
	Open: func(m *model.Store, secrets model.Secrets, clock op.Clock) (client.Store, error) {
		if c := swiftCredential(m); secrets[c.Key] == "" && (c.For != "" || m.Authenticated()) {
			return nil, fmt.Errorf("storage swift: there is no %s for %s: put it into the credentials or into %s",
				c.Key, c.For, c.Variable)
		}
		account, err := swift.New(swift.Config{Settings: m.Settings, AuthKind: m.AuthKind, Auth: m.Auth,
			Password: secrets["password"],
			Token:    secrets["token"], Clock: clock})
		if err != nil {
			return nil, err
		}
		return spreadSwift(account, m, clock)
	},
	OnNullServer: func(m *model.Store, address string) {
		m.AuthKind, m.Auth = "tempauth", map[string]string{"auth_url": address + "/auth/v1.0", "username": "ceiling"}
		m.Secrets = model.Secrets{"password": "ceiling"}
	},
}

// spreadSwift spreads an account over its proxy servers. Without a list there is the one of the storage URL, which may
// be known with the token only.
func spreadSwift(account *swift.Store, m *model.Store, clock op.Clock) (client.Store, error) {
	list, listed := m.Settings[spread.Endpoints], m.Settings[spread.Endpoints] != ""
	urls := []string{m.Settings["storage_url"]}
	if listed {
		var err error
		if urls, err = spread.List(map[string]string{spread.Endpoints: list}, ""); err != nil {
			return nil, fmt.Errorf("swift: %w", err)
		}
	}
	if urls[0] == "" && m.Settings[spread.Addresses] == spread.AllAddresses {
		return nil, fmt.Errorf("swift: %s=%s needs %s or storage_url: the token's storage URL is not known before",
			spread.Addresses, spread.AllAddresses, spread.Endpoints)
	}
	return spread.New(spread.Config{Settings: m.Settings, URLs: urls, Clock: clock,
		Open: func(address, dial string) (client.Store, error) {
			if !listed {
				address = "" // the account's own
			}
			return account.At(address, dial)
		}})
}

// authPaths are the usual paths of services that give tokens.
var authPaths = map[string]string{"tempauth": "/auth/v1.0", "keystone": "/v3", "keystonev2": "/v2.0",
	"keystonev3": "/v3"}

// swiftCredential is the password for an auth, and else the token.
func swiftCredential(m *model.Store) Credential {
	if m.Authenticated() {
		return Credential{"password", "OS_PASSWORD", "a token from authURL needs a password", m.Auth["username"]}
	}
	return Credential{"token", "OS_AUTH_TOKEN", "without an authURL the credentials have the token",
		m.Settings["storage_url"]}
}
