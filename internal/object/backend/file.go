package backend

import (
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/filestore"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

var fileStorage = Descriptor{
	Kind: "file",
	Keys: []string{"root", "sync"},
	Check: func(m *model.Store, _, _ func(string) bool) []Finding {
		if m.Settings["root"] != "" {
			return nil
		}
		return []Finding{{Message: "storage file does not say where it is", Hint: "root=/DIRECTORY"}}
	},
	Open: func(m *model.Store, _ model.Secrets, clock op.Clock) (client.Store, error) {
		return filestore.New(m.Settings, clock)
	},
}
