// Package clienttest is the conformance suite of clients: what all backends do in the same way.
package clienttest

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/payload"
)

// Options of the suite.
type Options struct {
	Store client.Store
	// Keeps: what was written can be read, and what was deleted cannot; the null kinds keep nothing.
	Keeps bool
	// Foreign makes a container without the mark, as another program would; nil: not tested.
	Foreign func(t *testing.T, name string)
	// PartSize of multipart writes that the server takes; 0: not tested.
	PartSize int64
	// Whole: a multipart write is one write, without requests of its own.
	Whole bool
	// Chunked: bodies may be sent in chunks of HTTP.
	Chunked bool
	// Prefix of names of containers; they must be unused.
	Prefix string
}

type suite struct {
	Options
	client client.Client
}

// Run is the suite.
func Run(t *testing.T, o Options) {
	c, err := o.Store.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := &suite{o, c}
	if o.Prefix == "" {
		s.Prefix = "conformance"
	}
	t.Run("life of an object", s.life)
	t.Run("sizes and ranges", s.sizes)
	t.Run("multipart", s.multipart)
	t.Run("files", s.files)
	t.Run("names", s.names)
	t.Run("ownership", s.ownership)
	t.Run("abort", s.abort)
}

// do executes r and checks what must hold of every result.
func (s *suite) do(t *testing.T, r client.Request) client.Result {
	t.Helper()
	var res client.Result
	s.client.Do(context.WithoutCancel(t.Context()), &r, &res) // also while cleaning up
	switch {
	case !res.Started.Known() || !res.Ended.Known() || res.Ended < res.Started:
		t.Errorf("verb %d: began at %d, ended at %d", r.Verb, res.Started, res.Ended)
	case res.First.Known() && (res.First < res.Started || res.First > res.Ended):
		t.Errorf("verb %d: the first byte at %d is outside [%d, %d]", r.Verb, res.First, res.Started, res.Ended)
	case res.Attempts < 1 && res.Failure != httpconn.LocalFailed && res.Code != client.NotOffered:
		t.Errorf("verb %d: %d attempts", r.Verb, res.Attempts)
	case (res.Failure == "") == (res.Status == 0):
		t.Errorf("verb %d: status %d and failure %q", r.Verb, res.Status, res.Failure)
	}
	return res
}

// must executes r, which has to succeed.
func (s *suite) must(t *testing.T, r client.Request) client.Result {
	t.Helper()
	res := s.do(t, r)
	if !res.OK() {
		t.Fatalf("verb %d of %s/%s: %s %s", r.Verb, r.Container, r.Object, res.Label(), res.Detail)
	}
	return res
}

// absent executes r, which must find nothing where the store keeps things.
func (s *suite) absent(t *testing.T, r client.Request) {
	t.Helper()
	if res := s.do(t, r); s.Keeps && !res.Absent() {
		t.Errorf("verb %d of %s/%s: %s %s, want 404 of what is asked for", r.Verb, r.Container, r.Object, res.Label(),
			res.Detail)
	}
}

// container makes a marked container and removes it, with its objects, after the test.
func (s *suite) container(t *testing.T, name string, objects ...string) []byte {
	t.Helper()
	c := []byte(s.Prefix + name)
	s.must(t, client.Request{Verb: client.MakeContainer, Container: c})
	t.Cleanup(func() {
		for _, o := range objects {
			s.do(t, client.Request{Verb: client.Delete, Container: c, Object: []byte(o)})
		}
		s.must(t, client.Request{Verb: client.RemoveContainer, Container: c})
		s.absent(t, client.Request{Verb: client.CheckOwner, Container: c})
	})
	return c
}

func (s *suite) life(t *testing.T) {
	c := s.container(t, "life", "a", "b")
	a, b := []byte("a"), []byte("b")
	s.absent(t, client.Request{Verb: client.Get, Container: c, Object: a, Length: -1})
	s.absent(t, client.Request{Verb: client.Head, Container: c, Object: a})
	put := s.must(t, client.Request{Verb: client.Put, Container: c, Object: a, Size: 10000, Writer: 1})
	if put.Bytes != 10000 {
		t.Errorf("put moved %d bytes, want 10000", put.Bytes)
	}
	got := s.must(t, client.Request{Verb: client.Get, Container: c, Object: a, Length: -1, Verify: true})
	if s.Keeps && got.Bytes != 10000 {
		t.Errorf("get moved %d bytes, want 10000", got.Bytes)
	}
	if s.Keeps && got.Writer != 1 {
		t.Errorf("what write 1 made is said to be of write %d", got.Writer)
	}
	s.must(t, client.Request{Verb: client.Head, Container: c, Object: a})
	s.must(t, client.Request{Verb: client.Copy, Container: c, Object: a, To: b})
	list := s.must(t, client.Request{Verb: client.List, Container: c, MaxKeys: 1000})
	prefixed := s.must(t, client.Request{Verb: client.List, Container: c, Object: b, MaxKeys: 1000})
	if s.Keeps && (list.Keys < 2 || prefixed.Keys != 1) {
		t.Errorf("%d keys, of which %d begin with b; want at least 2, and 1", list.Keys, prefixed.Keys)
	}
	// A copy holds the bytes of another object, which its stamps say.
	if res := s.do(t, client.Request{Verb: client.Get, Container: c, Object: b, Length: -1, Verify: true}); s.Keeps &&
		res.Violation != payload.Misplaced {
		t.Errorf("the copy was read as %q, want %q", res.Violation, payload.Misplaced)
	}
	s.must(t, client.Request{Verb: client.Delete, Container: c, Object: a})
	s.must(t, client.Request{Verb: client.Delete, Container: c, Object: b})
	s.absent(t, client.Request{Verb: client.Head, Container: c, Object: a})
	s.absent(t, client.Request{Verb: client.Put, Container: []byte(s.Prefix + "absent"), Object: a, Size: 5})
}

func (s *suite) sizes(t *testing.T) {
	c := s.container(t, "sizes", "o")
	o := []byte("o")
	for _, size := range []int64{0, 1, 31, 4096, 65536, 70001, 1 << 20} {
		for _, zero := range []bool{false, true} {
			if size == 0 && zero {
				continue
			}
			r := client.Request{Verb: client.Put, Container: c, Object: o, Size: size, Writer: uint64(size),
				Zero: zero, Chunked: s.Chunked && size%2 == 1}
			s.must(t, r)
			if !s.Keeps {
				continue
			}
			get := client.Request{Verb: client.Get, Container: c, Object: o, Length: -1, Verify: size > 0,
				Zero: zero} // nothing is short
			if got := s.must(t, get); got.Bytes != size {
				t.Errorf("%d bytes were written, %d read", size, got.Bytes)
			}
		}
	}
	s.must(t, client.Request{Verb: client.Put, Container: c, Object: o, Size: 100_000, Writer: 9})
	if !s.Keeps {
		return
	}
	for _, r := range [][2]int64{{0, 4096}, {4096, 10000}, {98304, 1696}} {
		got := s.must(t, client.Request{Verb: client.Get, Container: c, Object: o, Offset: r[0], Length: r[1],
			Verify: true})
		if got.Bytes != r[1] {
			t.Errorf("range %v: %d bytes", r, got.Bytes)
		}
	}
	for _, verify := range []bool{false, true} {
		if res := s.do(t, client.Request{Verb: client.Get, Container: c, Object: o, Offset: 98304, Length: 4096,
			Verify: verify}); res.OK() {
			t.Errorf("a range that ends behind the object, verify %v: %s with %d bytes", verify, res.Label(), res.Bytes)
		}
	}
}

func (s *suite) multipart(t *testing.T) {
	if s.PartSize == 0 {
		t.Skip("this store has no multipart writes of a size that a test can afford")
	}
	size, big := 2*s.PartSize+5000, []byte("big")
	c := s.container(t, "parts", "small")
	put := client.Request{Verb: client.PutParts, Container: c, Object: big, Size: size, PartSize: s.PartSize}
	for put.Writer = 4; put.Writer < 6; put.Writer++ { // the second one takes the first one's place
		if res := s.must(t, put); res.Bytes != size {
			t.Errorf("%d bytes moved, want %d", res.Bytes, size)
		}
	}
	if s.Keeps {
		got := s.must(t, client.Request{Verb: client.Get, Container: c, Object: big, Length: -1, Verify: true})
		if got.Bytes != size {
			t.Errorf("%d bytes read, want %d", got.Bytes, size)
		}
	}
	s.partsAtOnce(t, c, size)
	s.must(t, client.Request{Verb: client.Put, Container: c, Object: []byte("small"), Size: 5})
	if res := s.do(t, client.Request{Verb: client.RemoveContainer, Container: c}); s.Keeps && res.Status != 409 {
		t.Errorf("a container with objects in it was removed: %s", res.Label())
	}
	for _, o := range [][]byte{big, []byte("small")} { // parts go with it, and need not be there
		s.must(t, client.Request{Verb: client.Delete, Container: c, Object: o, Parts: true})
		s.absent(t, client.Request{Verb: client.Head, Container: c, Object: o})
	}
}

// partsAtOnce writes, copies and abandons an object whose parts are in flight together; each step is seen.
func (s *suite) partsAtOnce(t *testing.T, c []byte, size int64) {
	t.Helper()
	var mu sync.Mutex
	steps := map[client.Step]int{}
	var bytes int64
	r := client.Request{Verb: client.PutParts, Container: c, Object: []byte("once"), Size: size, PartSize: s.PartSize,
		PartConcurrency: 3, Writer: 7, Steps: func(step client.Step, one *client.Result) {
			mu.Lock()
			defer mu.Unlock()
			if steps[step]++; !one.OK() || one.Ended < one.Started {
				t.Errorf("step %s: %s %s, from %d to %d", step, one.Label(), one.Detail, one.Started, one.Ended)
			}
			bytes += one.Bytes
		}}
	if res := s.must(t, r); res.Bytes != size {
		t.Errorf("%d bytes moved by parts in flight together, want %d", res.Bytes, size)
	}
	if s.Keeps && !s.Whole && (steps[client.Part] != 3 || steps[client.Complete] != 1 || bytes != size) {
		t.Errorf("steps %v with %d bytes, want 3 parts and a completion with %d", steps, bytes, size)
	}
	copied := r
	copied.Verb, copied.To = client.Copy, []byte("copied")
	s.must(t, copied)
	for _, o := range [][]byte{r.Object, copied.To} {
		get := client.Request{Verb: client.Get, Container: c, Object: o, Length: -1, Verify: true}
		got := s.do(t, get)
		want := payload.Sound
		if string(o) != "once" { // it has the content of the other
			want = payload.Misplaced
		}
		if s.Keeps && (got.Bytes != size || got.Violation != want) {
			t.Errorf("%s: %s with %d bytes, want %d %s", o, got.Label(), got.Bytes, size, want)
		}
		s.must(t, client.Request{Verb: client.Delete, Container: c, Object: o, Parts: true})
	}
	abandoned := r
	abandoned.Abandon, abandoned.Object = true, []byte("abandoned")
	s.must(t, abandoned)
	s.absent(t, client.Request{Verb: client.Head, Container: c, Object: abandoned.Object})
	failed := r
	failed.Container, failed.Steps = []byte(s.Prefix+"absent"), nil
	if res := s.do(t, failed); s.Keeps && res.OK() {
		t.Errorf("parts were written to a container that does not exist: %s", res.Label())
	}
	if left := s.must(t, client.Request{Verb: client.ListUploads, Container: c}); left.Keys != 0 {
		t.Errorf("%d uploads are left", left.Keys)
	}
	list := s.must(t, client.Request{Verb: client.List, Container: c, MaxKeys: 1000, Names: true})
	for _, name := range list.Names {
		if s.Keeps && !strings.HasPrefix(name, "big") && name != client.Marker {
			t.Errorf("%s is left", name)
		}
	}
}

type content []byte

func (c content) Read(dst []byte, offset int64) error {
	if copy(dst, c[offset:]) < len(dst) {
		return os.ErrInvalid
	}
	return nil
}

func (s *suite) files(t *testing.T) {
	c := s.container(t, "files", "f")
	text := content(bytes.Repeat([]byte("no body of ours. "), 1000))
	r := client.Request{Verb: client.Put, Container: c, Object: []byte("f"), Size: int64(len(text)), File: text}
	s.must(t, r)
	got := s.do(t, client.Request{Verb: client.Get, Container: c, Object: []byte("f"), Length: -1, Verify: true})
	if s.Keeps && (got.Violation != payload.Foreign || got.OK()) {
		t.Errorf("another program's content was read as %q, want %q", got.Violation, payload.Foreign)
	}
	r.Size += 5
	if res := s.do(t, r); res.Failure != httpconn.LocalFailed {
		t.Errorf("a file that became shorter: %s, want %s", res.Label(), httpconn.LocalFailed)
	}
}

func (s *suite) names(t *testing.T) {
	odd := "ö b+c&d=e%f'()~_.-"
	c := s.container(t, "names", odd)
	s.must(t, client.Request{Verb: client.Put, Container: c, Object: []byte(odd), Size: 4096, Writer: 3})
	s.must(t, client.Request{Verb: client.Head, Container: c, Object: []byte(odd)})
	if s.Keeps {
		s.must(t, client.Request{Verb: client.Get, Container: c, Object: []byte(odd), Length: -1, Verify: true})
	}
	list := s.must(t, client.Request{Verb: client.List, Container: c, Object: []byte("ö b+"), MaxKeys: 10, Names: true})
	if s.Keeps && (list.Keys != 1 || list.Listed) {
		t.Errorf("%d keys begin with %q, want 1, and it is none itself (%v)", list.Keys, "ö b+", list.Listed)
	}
	if want := []string{odd}; s.Keeps && !slices.Equal(list.Names, want) {
		t.Errorf("the keys that begin with %q are %q, want %q", "ö b+", list.Names, want)
	}
	if list := s.must(t, client.Request{Verb: client.List, Container: c, Object: []byte(odd),
		MaxKeys: 1}); list.Listed != s.Keeps {
		t.Errorf("a listing has %q: %v, want %v", odd, list.Listed, s.Keeps)
	}
}

// ownership is what keeps other people's data safe.
func (s *suite) ownership(t *testing.T) {
	c := s.container(t, "ours", "o")
	s.must(t, client.Request{Verb: client.CheckOwner, Container: c})
	again := s.must(t, client.Request{Verb: client.MakeContainer, Container: c})
	if s.Keeps && again.Code != client.Existed {
		t.Errorf("made again: %s, want %s", again.Label(), client.Existed)
	}
	s.must(t, client.Request{Verb: client.Put, Container: c, Object: []byte("o"), Size: 10, Writer: 3})
	if res := s.do(t, client.Request{Verb: client.RemoveContainer, Container: c}); s.Keeps &&
		(res.OK() || res.Status != 409) {
		t.Errorf("a container with an object in it was removed: %s", res.Label())
	}
	s.must(t, client.Request{Verb: client.CheckOwner, Container: c}) // the mark is still there
	if s.Foreign == nil {
		return
	}
	name := s.Prefix + "theirs"
	s.Foreign(t, name)
	if res := s.must(t, client.Request{Verb: client.MakeContainer,
		Container: []byte(name)}); res.Code != client.Existed {
		t.Errorf("%s, want %s", res.Label(), client.Existed)
	}
	for _, v := range []client.Verb{client.CheckOwner, client.RemoveContainer} {
		if res := s.do(t, client.Request{Verb: v, Container: []byte(name)}); res.OK() || res.Code != client.NotOurs {
			t.Errorf("verb %d of somebody else's container: %s, want %s", v, res.Label(), client.NotOurs)
		}
	}
	s.must(t, client.Request{Verb: client.List, Container: []byte(name), MaxKeys: 5}) // it is still there
}

func (s *suite) abort(t *testing.T) {
	c, err := s.Store.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Abort()
	var res client.Result
	c.Do(t.Context(), &client.Request{Verb: client.Get, Container: []byte("x"), Object: []byte("y"), Length: -1}, &res)
	if res.Failure != httpconn.Aborted || res.OK() {
		t.Errorf("after Abort: %s, want %s", res.Label(), httpconn.Aborted)
	}
	if d := s.Store.Describe(); d == "" || strings.Contains(strings.ToLower(d), "secret") {
		t.Errorf("the store calls itself %q", d)
	}
}
