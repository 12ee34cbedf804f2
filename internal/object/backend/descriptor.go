package backend

import (
	"slices"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/spread"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Descriptor is all that sets one kind of object storage apart from another.
type Descriptor struct {
	Kind  string   // model.Store.Kind, and the type of a storage in COSBench's XML
	Types []string // further types there
	Keys  []string // of its settings, those of credentials included
	Auth  bool     // takes an auth, whose settings become model.Store.Auth
	// Variables of the environment that hold credentials, as other programs use them.
	Variables []Variable
	// Credential that m cannot do without; empty key: none. Nil: of no store.
	Credential func(m *model.Store) Credential
	// Unsigned is what to do where there are no credentials, which is rarely meant; empty: it needs none.
	Unsigned string
	Traits   model.Traits
	// Check finds what a file does not say of a store; has says which settings of its storage and its auth
	// the file gives. Nil: all may be left out.
	Check func(m *model.Store, storageHas, authHas func(key string) bool) []Finding
	// Open makes a store and sends nothing.
	Open func(m *model.Store, secrets model.Secrets, clock op.Clock) (client.Store, error)
	// OnNullServer turns m, a copy without what only its own server understands, into a store on a null
	// server. Nil: the null server does not speak its protocol, and storage null takes its place.
	OnNullServer func(m *model.Store, address string)
}

// Variable of the environment that holds a credential.
type Variable struct{ Key, Name string }

// Credential that a store needs: its key, its variable of the environment, why, and for what.
type Credential struct{ Key, Variable, Why, For string }

// Finding is something that a file does not say, of the storage or of its auth.
type Finding struct {
	Auth, Warning bool
	Message, Hint string
}

// All kinds of object storage. Another one is a line here.
func All() []*Descriptor {
	return []*Descriptor{
		&fileStorage,
		&nullStorage,
		&s3Storage,
		&swiftStorage,
	}
}

// Find gives the kind of that name; nil if there is none.
func Find(kind string) *Descriptor {
	for _, d := range All() {
		if d.Kind == kind {
			return d
		}
	}
	return nil
}

// OfType gives the kind that runs a type of storage of COSBench's XML; nil if none does.
func OfType(name string) *Descriptor {
	for _, d := range All() {
		if d.Kind == name || slices.Contains(d.Types, name) {
			return d
		}
	}
	return nil
}

// Types returns the types of storage that there are, sorted: the kinds, and COSBench's other names for them.
func Types() (types []string) {
	for _, d := range All() {
		types = append(append(types, d.Kind), d.Types...)
	}
	types = slices.DeleteFunc(types, func(t string) bool { return t == "" })
	slices.Sort(types)
	return types
}

// Traits is the model.Kinds of All.
func Traits(kind string) model.Traits {
	if d := Find(kind); d != nil {
		return d.Traits
	}
	return model.Traits{}
}

// httpKeys are the settings of stores that speak HTTP; see client.Endpoint.
var httpKeys = []string{"timeout", "no_verify_ssl", "cafile", "credentials", "proxyhost", "proxyport", "family",
	"source", "http"}

// ownKeys are settings that have no meaning on a null server.
var ownKeys = []string{"cafile", "no_verify_ssl", "credentials", "storage_url", "token", "root", "proxyhost",
	"proxyport", "family", "source", "http", spread.Endpoints, spread.Addresses, spread.By, spread.OnFailure}

// OnNullServer is a store like s on a null server, whose objects have so many bytes.
func OnNullServer(s *model.Store, address string, size int64) model.Store {
	d := Find(s.Kind)
	if d == nil || d.OnNullServer == nil {
		return inProcess(size)
	}
	n := model.Store{Kind: s.Kind, Settings: map[string]string{}}
	for key, value := range s.Settings {
		if !slices.Contains(ownKeys, key) {
			n.Settings[key] = value
		}
	}
	d.OnNullServer(&n, address)
	return n
}
