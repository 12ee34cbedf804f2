package server

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// FuzzManifest checks that a run is closed only by a manifest that has each of its files with its sum, and that another
// one changes nothing.
func FuzzManifest(f *testing.F) {
	const content = "content"
	sum := sha256.Sum256([]byte(content))
	entry := fmt.Sprintf(`{"path": "raw/x", "bytes": %d, "sha256": "%s"}`, len(content), hex.EncodeToString(sum[:]))
	for _, seed := range []string{
		`{"format": 1, "files": [` + entry + `]}`, `{"format": 1, "files": []}`, `{"files": [` + entry + `]}`,
		`{"format": 1, "files": [` + entry + `,` + entry + `]}`, `{"format": 1, "files": [{"path": "../x"}]}`,
		`{"format": 1, "files": [` + entry + `], "more": {"a": [1]}}`, `[`, `{"format": 1, "files": [{"path": "raw"}]}`,
		`{"format": 1, "files": [` + entry, ``, `{"format": 1, "format": 0, "files": [` + entry + `]}`,
		`{"format": 1, "files": [` + entry + `], "Files": [{"path": "raw/x", "sha256": "forged"}]}`,
		`{"format": 1, "files": [` + entry + `], "fileſ": [{"path": "raw/x", "sha256": "forged"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, manifest []byte) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "raw"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "raw", "x"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		folder, err := OpenFolder(dir, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		differences, err := folder.Seal(t.Context(), manifest)
		written, readErr := os.ReadFile(filepath.Join(dir, manifestFile))
		closed := readErr == nil
		if closed != (err == nil && len(differences) == 0) || closed != folder.frozen {
			t.Fatalf("differences %v, error %v; manifest written: %v, closed: %v", differences, err, closed, folder.frozen)
		}
		if !closed {
			return
		}
		if string(written) != string(manifest) {
			t.Errorf("written is %q", written)
		}
		// Readers of the bundle do not distinguish capitals, and take the last of equal keys.
		var m struct{ Files []manifestEntry }
		if json.Unmarshal(manifest, &m) == nil && len(m.Files) == 1 && m.Files[0].SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("closed by %+v", m.Files)
		}
	})
}
