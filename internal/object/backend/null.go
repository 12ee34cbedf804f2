package backend

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/nullstore"
	"github.com/cnsbench/cnsbench/internal/object/selector"
	"github.com/cnsbench/cnsbench/internal/op"
)

// defaultNullSize is the size of storage null's objects, in bytes.
const defaultNullSize = 4096

var nullStorage = Descriptor{
	Kind:   "null",
	Types:  []string{"", "none", "mock", "noop"},
	Keys:   []string{"size"},
	Traits: model.Traits{Transient: true},
	Open: func(m *model.Store, _ model.Secrets, clock op.Clock) (client.Store, error) {
		s := &nullstore.Store{Size: defaultNullSize, Clock: clock}
		if text := m.Settings["size"]; text != "" {
			var err error
			if s.Size, err = selector.ParseBytes(text); err != nil {
				return nil, fmt.Errorf("storage null: size: %w", err)
			}
		}
		return s, nil
	},
}

// inProcess is a storage null whose objects have so many bytes.
func inProcess(size int64) model.Store {
	return model.Store{Kind: nullStorage.Kind, Settings: map[string]string{"size": fmt.Sprintf("%dB", size)}}
}
