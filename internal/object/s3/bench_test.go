package s3

import (
	"strconv"
	"testing"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/nullserver"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/clienttest"
)

// null starts a null server with objects of 4 KiB.
func null(tb testing.TB) *Store { return nullBy(tb, "true") }

func nullBy(tb testing.TB, pathStyle string) *Store {
	tb.Helper()
	s, err := New(Config{Settings: map[string]string{"endpoint": clienttest.Loopback(tb,
		nullserver.Options{Size: 4096}.Serve), "path_style_access": pathStyle}, Clock: op.NewClock(),
		Credentials: Credentials{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""}})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// A signed and verified operation allocates nothing.
func TestNoAllocations(t *testing.T) {
	c, err := null(t).Client()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, r := range []client.Request{
		{Verb: client.Get, Container: []byte("b"), Object: []byte("o1"), Length: -1, Verify: true},
		{Verb: client.Put, Container: []byte("b"), Object: []byte("o1"), Size: 4096, Writer: 5},
	} {
		var res client.Result
		if n := testing.AllocsPerRun(500, func() {
			c.Do(t.Context(), &r, &res)
			if !res.OK() {
				t.Fatal(res)
			}
		}); n > 20 {
			t.Errorf("verb %d: %v allocations, of client and server", r.Verb, n)
		}
	}
}

func benchmark(b *testing.B, r client.Request) {
	s := null(b)
	b.ReportAllocs()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		c, _ := s.Client()
		defer c.Close()
		var res client.Result
		q := r
		var name []byte
		for i := 0; pb.Next(); i++ {
			name = strconv.AppendInt(append(name[:0], "myobjects"...), int64(i), 10)
			q.Object = name
			if c.Do(b.Context(), &q, &res); !res.OK() {
				b.Errorf("%+v", res)
				return
			}
		}
	})
}

// Names of hosts are put together in place: laying a request out and signing it
// allocates as little with the bucket in one as with it in the path.
func TestHostNamesAllocateNothing(t *testing.T) {
	for _, pathStyle := range []string{"true", "false"} {
		c, err := nullBy(t, pathStyle).Client()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		k := c.(*adapter)
		if n := testing.AllocsPerRun(500, func() {
			k.address([]byte("bucket"), []byte("myobjects12345"))
			k.head("GET")
		}); n >= 1 {
			t.Errorf("path_style_access=%s: %v allocations", pathStyle, n)
		}
	}
}

// The time is that of client and server together.
func BenchmarkGet4K(b *testing.B) {
	benchmark(b, client.Request{Verb: client.Get, Container: []byte("bucket"), Length: -1, Verify: true})
}

func BenchmarkPut4K(b *testing.B) {
	benchmark(b, client.Request{Verb: client.Put, Container: []byte("bucket"), Size: 4096, Writer: 1})
}

func BenchmarkSign4(b *testing.B) {
	s := null(b)
	c, _ := s.Client()
	k := c.(*adapter)
	for range b.N {
		k.address([]byte("bucket"), []byte("myobjects12345"))
		k.head("GET")
	}
}
