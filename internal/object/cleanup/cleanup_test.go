package cleanup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/filestore"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

func files(t *testing.T) (client.Store, string) {
	dir := t.TempDir()
	s, err := filestore.New(map[string]string{"root": dir}, op.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

// fill makes a container with so many objects.
func fill(t *testing.T, s client.Store, container string, objects int) {
	c, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	do := func(r client.Request) {
		var res client.Result
		if c.Do(t.Context(), &r, &res); !res.OK() {
			t.Fatal(res.Label(), res.Detail)
		}
	}
	do(client.Request{Verb: client.MakeContainer, Container: []byte(container)})
	for i := range objects {
		do(client.Request{Verb: client.Put, Container: []byte(container), Object: fmt.Appendf(nil, "o%d", i), Size: 10})
	}
}

func swept(t *testing.T, s Sweeper, ctx context.Context) (found []Found, err error) {
	made := []model.Numbered{{Name: model.Name{Prefix: "c"}, Low: 1, High: 4}}
	err = s.Run(ctx, made, func(f Found) {
		f.Why = ""
		found = append(found, f)
	})
	return found, err
}

// All that is in our containers goes, more than one listing of it; what is
// somebody else's stays, and so does what cannot be deleted, and is said.
func TestSweep(t *testing.T) {
	s, dir := files(t)
	fill(t, s, "c1", 2*page+3)
	fill(t, s, "c3", 0)
	theirs := filepath.Join(dir, "c2", "precious")
	if err := os.MkdirAll(theirs, 0o755); err != nil {
		t.Fatal(err)
	}
	fill(t, s, "c4", 3)
	stuck := filepath.Join(dir, "c4", "a", "b")
	if err := os.MkdirAll(stuck, 0o755); err != nil { // a directory that is not empty is no object to delete
		t.Fatal(err)
	}

	looked, err := swept(t, Sweeper{Store: s, Workers: 3, Look: true}, t.Context())
	want := []Found{
		{Container: "c1", State: Seen, Objects: page - 1, More: true}, {Container: "c2", State: NotOurs},
		{Container: "c3", State: Seen}, {Container: "c4", State: Seen, Objects: 4}}
	if diff := cmp.Diff(want, looked); diff != "" || err != nil {
		t.Error(err, diff)
	}
	did, err := swept(t, Sweeper{Store: s, Workers: 3}, t.Context())
	want = []Found{
		{Container: "c1", State: Removed, Objects: 2*page + 3}, {Container: "c2", State: NotOurs},
		{Container: "c3", State: Removed}, {Container: "c4", State: Left, Objects: 3}}
	if diff := cmp.Diff(want, did); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, path := range []string{theirs, stuck} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	again, err := swept(t, Sweeper{Store: s}, t.Context())
	if err != nil || again[0].State != Absent || again[2].State != Absent {
		t.Error(again, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if found, err := swept(t, Sweeper{Store: s}, ended); err == nil || len(found) > 0 {
		t.Errorf("after an interrupt: %v, %v", found, err)
	}
}

// A store that lists what is gone, or says of an empty container that it is not,
// is asked again.
func TestSweepOfALateStore(t *testing.T) {
	late := &lateStore{lists: 3, conflicts: 2}
	found, err := swept(t, Sweeper{Store: late, Workers: 2}, t.Context())
	if want := (Found{Container: "c1", State: Removed, Objects: 1}); err != nil || len(found) == 0 || found[0] != want {
		t.Errorf("%v, %v; want %v first", found, err, want)
	}
	if late.lists > 0 || late.conflicts > 0 {
		t.Errorf("%d listings and %d refusals were never met", late.lists, late.conflicts)
	}
}

// lateStore has one container, c1, with one object.
type lateStore struct {
	lists, conflicts int
	deleted, removed bool
}

func (s *lateStore) Client() (client.Client, error) { return s, nil }
func (s *lateStore) Describe() string               { return "late" }
func (s *lateStore) Abort()                         {}
func (s *lateStore) Close()                         {}

func (s *lateStore) Do(_ context.Context, r *client.Request, res *client.Result) {
	*res = client.Result{Status: 200}
	switch {
	case string(r.Container) != "c1" || s.removed:
		res.Status = 404
	case r.Verb == client.List && s.lists > 0:
		if s.deleted {
			s.lists--
		}
		res.Keys, res.Names = 1, []string{"o"}
	case r.Verb == client.Delete && s.deleted:
		res.Status = 404
	case r.Verb == client.Delete:
		s.deleted = true
	case r.Verb == client.RemoveContainer && s.conflicts > 0:
		s.conflicts--
		res.Status = 409
	case r.Verb == client.RemoveContainer:
		s.removed = true
	}
}
