package filestore_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/filestore"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/clienttest"
)

func TestConformance(t *testing.T) {
	root := t.TempDir()
	for _, sync := range []string{"none", "data"} {
		t.Run(sync, func(t *testing.T) {
			s, err := filestore.New(map[string]string{"root": root, "sync": sync}, op.NewClock())
			if err != nil {
				t.Fatal(err)
			}
			clienttest.Run(t, clienttest.Options{Store: s, Keeps: true, PartSize: 8192, Whole: true, Prefix: sync,
				Foreign: func(t *testing.T, name string) {
					if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
						t.Fatal(err)
					}
				}})
		})
	}
}

func TestNamesDoNotLeadOut(t *testing.T) {
	root := t.TempDir()
	s, err := filestore.New(map[string]string{"root": filepath.Join(root)}, op.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	c, _ := s.Client()
	for _, name := range []string{"..", "../x", "/etc", "a/b", ".", ""} {
		var res client.Result
		c.Do(t.Context(), &client.Request{Verb: client.Put, Container: []byte(name), Object: []byte("o"), Size: 1},
			&res)
		if res.Status != 400 {
			t.Errorf("container %q: %s, want 400", name, res.Label())
		}
	}
}

// What is under way ends when nobody waits any more, is no success, and leaves
// nothing behind.
func TestAbort(t *testing.T) {
	root := t.TempDir()
	s, err := filestore.New(map[string]string{"root": root}, op.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "c"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "c", "large"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(root, "c", "large"), 1<<40); err != nil {
		t.Fatal(err)
	}
	for verb, object := range map[client.Verb]string{client.Get: "large", client.Put: "new", client.Copy: "large"} {
		c, err := s.Client()
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(50*time.Millisecond, c.Abort)
		var res client.Result
		began := time.Now()
		c.Do(t.Context(), &client.Request{Verb: verb, Container: []byte("c"), Object: []byte(object),
			To: []byte("copy"), Length: -1, Size: 1 << 40}, &res)
		if took := time.Since(began); res.Label() != "aborted" || res.Status != 0 || took > 10*time.Second {
			t.Errorf("verb %d: %s after %v, want it aborted", verb, res.Label(), took)
		}
	}
	if left, err := os.ReadDir(filepath.Join(root, "c")); err != nil || len(left) != 1 {
		t.Errorf("%v are left, %v", left, err)
	}
}

func TestSettings(t *testing.T) {
	for _, settings := range []map[string]string{{"root": "/no/such/directory"}, {"root": "/etc/passwd"},
		{"root": "/", "sync": "always"}, {}} {
		if _, err := filestore.New(settings, op.NewClock()); err == nil {
			t.Errorf("%v was taken", settings)
		}
	}
}
