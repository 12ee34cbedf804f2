package nullstore_test

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/object/nullstore"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/clienttest"
)

func TestConformance(t *testing.T) {
	clienttest.Run(t, clienttest.Options{Store: &nullstore.Store{Size: 10000, Clock: op.NewClock()}, PartSize: 8192,
		Chunked: true})
}
