package filestore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cnsbench/cnsbench/internal/objectstore/filestore"
	"github.com/cnsbench/cnsbench/internal/objectstore/store"
	"github.com/cnsbench/cnsbench/internal/objectstore/storetest"
	"github.com/cnsbench/cnsbench/internal/op"
)

func TestConformance(t *testing.T) {
	root := t.TempDir()
	for _, sync := range []string{"none", "data"} {
		t.Run(sync, func(t *testing.T) {
			s, err := filestore.New(map[string]string{"root": root, "sync": sync}, op.NewClock())
			if err != nil {
				t.Fatal(err)
			}
			storetest.Run(t, storetest.Options{Store: s, Keeps: true, PartSize: 8192, Prefix: sync, Foreign: func(t *testing.T, name string) {
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
		var res store.Result
		c.Do(t.Context(), &store.Request{Verb: store.Put, Container: []byte(name), Object: []byte("o"), Size: 1}, &res)
		if res.Status != 400 {
			t.Errorf("container %q: %s, want 400", name, res.Label())
		}
	}
}

func TestSettings(t *testing.T) {
	for _, settings := range []map[string]string{{"root": "/no/such/directory"}, {"root": "/etc/passwd"}, {"root": "/", "sync": "always"}, {}} {
		if _, err := filestore.New(settings, op.NewClock()); err == nil {
			t.Errorf("%v was taken", settings)
		}
	}
}
