package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// openStore opens a store whose clock is returned.
func openStore(t *testing.T, dir string, l Limits) (*Store, *time.Time) {
	t.Helper()
	s, err := OpenStore(dir, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	now := time.Now()
	s.now = func() time.Time { return now }
	return s, &now
}

// addRun writes a run of a size, and closes it as lost at the store's time.
func addRun(t *testing.T, s *Store, namespace, id string, size int) {
	t.Helper()
	appendTo(t, s, namespace, id, size)
	if err := s.Lost(namespace, id, "test"); err != nil {
		t.Fatal(err)
	}
}

func appendTo(t *testing.T, s *Store, namespace, id string, size int) {
	t.Helper()
	if err := tryAppend(s, namespace, id, size); err != nil {
		t.Fatal(err)
	}
}

func tryAppend(s *Store, namespace, id string, size int) error {
	_, err := s.AppendFrom(namespace, id, "raw/x", 0, strings.NewReader(strings.Repeat("x", size)), int64(size))
	return err
}

// runs lists the runs of a store as NAMESPACE/ID, with a ! if they are open.
func runs(t *testing.T, s *Store) (all []string) {
	t.Helper()
	list, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		open := ""
		if r.Closed == "" {
			open = "!"
		}
		all = append(all, r.Namespace+"/"+r.ID+open)
	}
	return all
}

func TestRetention(t *testing.T) {
	tests := []struct {
		name string
		keep Retention
		want []string
	}{
		{"all", Retention{}, []string{"a/r1", "a/r2", "a/r3", "a/r4!", "b/r1"}},
		{"age", Retention{Age: 90 * time.Minute}, []string{"a/r2", "a/r3", "a/r4!"}},
		{"number", Retention{Runs: 1}, []string{"a/r3", "a/r4!", "b/r1"}},
		{"size", Retention{Bytes: 2500}, []string{"a/r2", "a/r3", "a/r4!", "b/r1"}},
		{"the newest exceeds the size", Retention{Bytes: 1}, []string{"a/r3", "a/r4!", "b/r1"}},
		{"silence", Retention{Silence: time.Hour}, []string{"a/r1", "a/r2", "a/r3", "a/r4", "b/r1"}},
		{"silence is shorter", Retention{Silence: 3 * time.Hour}, []string{"a/r1", "a/r2", "a/r3", "a/r4!", "b/r1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, now := openStore(t, t.TempDir(), Limits{NamespaceBytes: 1 << 20})
			addRun(t, s, "a", "r1", 1000)
			addRun(t, s, "b", "r1", 1000)
			appendTo(t, s, "a", "r4", 1000)
			*now = now.Add(time.Hour)
			addRun(t, s, "a", "r2", 1000)
			*now = now.Add(time.Minute)
			addRun(t, s, "a", "r3", 1000)
			*now = now.Add(time.Hour)
			s.Sweep(t.Context(), tt.keep, func(line string) { t.Log(line) })
			if diff := cmp.Diff(tt.want, runs(t, s)); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if bytes, err := s.runsSize("a"); err != nil || s.accounts["a"].bytes != bytes {
				t.Errorf("%d bytes are counted, there are %d (%v)", s.accounts["a"].bytes, bytes, err)
			}
		})
	}
}

// The quota of a namespace holds over its runs and a restart, and concerns no other.
func TestQuota(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenStore(dir, Limits{NamespaceBytes: 2500, NamespaceRuns: 3})
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, s, "a", "r1", 1000)
	appendTo(t, s, "a", "r2", 1000)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ = openStore(t, dir, Limits{NamespaceBytes: 2500, NamespaceRuns: 3})
	refused := func(err error) {
		t.Helper()
		if !errors.Is(err, ErrQuota) {
			t.Errorf("error %v: want %v", err, ErrQuota)
		}
	}
	refused(tryAppend(s, "a", "r3", 1000))
	refused(s.Replace("a", "r1", "report.html", strings.NewReader(strings.Repeat("x", 1000)), -1))
	if n, err := s.runsSize("a"); err != nil || n != 2000 {
		t.Errorf("%d bytes on disk, %v", n, err)
	}
	appendTo(t, s, "b", "r1", 2000)
	if err := s.Remove(t.Context(), "a", "r1", "raw/x"); err != nil {
		t.Fatal(err)
	}
	appendTo(t, s, "a", "r3", 1000)
	if err := s.Delete("a", "r3"); err != nil {
		t.Fatal(err)
	}
	appendTo(t, s, "a", "r4", 1000)
	refused(tryAppend(s, "a", "r5", 1)) // the fourth run
}

// A client learns of the quota by the code of a full disk.
func TestQuotaOverHTTP(t *testing.T) {
	store, _ := openStore(t, t.TempDir(), Limits{NamespaceBytes: 10})
	server := serveStore(t, store)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut,
		server+"/v1/runs/a/r1/files/raw/x?offset=0", strings.NewReader("more than ten bytes"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusInsufficientStorage {
		t.Errorf("status %s", response.Status)
	}
}

// A service that was killed while it deleted a run, or wrote its mark, leaves nothing of it to the next one.
func TestOrphansAreSwept(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/.deleted-X/raw/x", "a/.gone.closed", "a/.r1.closed.tmp", "a/r1/raw/x", "a/.r1.closed",
		"a/.other", "lost+found/.x.closed"} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
			os.WriteFile(file, []byte(`{"closed": "complete"}`), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	openStore(t, dir, Limits{})
	var left []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			left = append(left, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a/.other", "a/.r1.closed", "a/r1/raw/x", "lost+found/.x.closed"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// A run that appends is not silent, however old its run.json and its directory are.
func TestSilenceCountsFromTheLastAppend(t *testing.T) {
	dir := t.TempDir()
	s, now := openStore(t, dir, Limits{})
	appendTo(t, s, "a", "r1", 10)
	old := now.Add(-48 * time.Hour)
	for _, name := range []string{"a/r1", "a/r1/raw"} {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	*now = now.Add(2 * lease)
	s.expire() // as after a while without requests
	s.Sweep(t.Context(), Retention{Silence: time.Hour}, func(line string) { t.Error(line) })
	*now = now.Add(2 * time.Hour)
	var said []string
	s.Sweep(t.Context(), Retention{Silence: time.Hour}, func(line string) { said = append(said, line) })
	if len(said) != 1 || !strings.Contains(fmt.Sprint(said), "closed as lost") {
		t.Errorf("said %q", said)
	}
}

// serveStore serves a store to everyone, and returns its URL.
func serveStore(t *testing.T, store *Store) string {
	t.Helper()
	server := httptest.NewServer((&Handler{Store: store, Auth: AllowAll{}}).Serve())
	t.Cleanup(server.Close)
	return server.URL
}
