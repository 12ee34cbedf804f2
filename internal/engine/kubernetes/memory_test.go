package kubernetes

import (
	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/op"
)

func testConfig() *rest.Config { return &rest.Config{Host: "https://cluster.example"} }

// memory is a ledger that remembers what was entered.
type memory struct{ names []string }

func (m *memory) Add(e op.LedgerEntry) error {
	m.names = append(m.names, e.Kind+" "+e.Name)
	return nil
}
func (m *memory) Note(e op.LedgerEntry) error {
	m.names = append(m.names, "note "+e.Kind+" "+e.Name)
	return nil
}

func (m *memory) Done(string, string) error { return nil }
func (m *memory) Open() []op.LedgerEntry    { return nil }
