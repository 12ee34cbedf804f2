package nullstore_test

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/objectstore/nullstore"
	"github.com/cnsbench/cnsbench/internal/objectstore/storetest"
	"github.com/cnsbench/cnsbench/internal/op"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Options{Store: &nullstore.Store{Size: 10000, Clock: op.NewClock()}, PartSize: 8192, Chunked: true})
}
