package inputs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cnsbench/cnsbench/internal/workload"
)

// FuzzLibraryArchive checks that the packed folder of a library, damaged or hostile, gives a library or an error.
func FuzzLibraryArchive(f *testing.F) {
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "two.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two, "+
		"labels: {type: workload}}\ndata: {a.yaml: 'kind: Pod'}\n"), 0o600); err != nil {
		f.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "one"), 0o700); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "one", "pod.yaml"), []byte("kind: Pod"), 0o600); err != nil {
		f.Fatal(err)
	}
	packed, err := pack(os.DirFS(dir), "mine")
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(packed))
	f.Add([]byte(packed[:len(packed)/2]))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, archive []byte) {
		dir := t.TempDir()
		half := len(archive) / 2
		for name, part := range map[string][]byte{"00": archive[:half], "01": archive[half:]} {
			if err := os.WriteFile(filepath.Join(dir, name), part, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		folder, err := unpack(dir)
		if err != nil {
			return
		}
		library, err := workload.FromFolders(folder, "mine")
		if err != nil {
			return
		}
		for _, name := range library.Names() {
			if _, ok := library.Get(name); !ok {
				t.Errorf("%q is listed, and not there", name)
			}
		}
	})
}
