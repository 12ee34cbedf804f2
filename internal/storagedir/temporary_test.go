package storagedir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTemporary: the directory of a user without a home has a name that all know, and lies where all may write. One that
// another user can have made, or can read, is refused.
func TestTemporary(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(dir string) error
		want string // part of the error; empty: none
	}{
		{"own", func(dir string) error { return os.Mkdir(dir, 0o700) }, ""},
		{"missing", func(string) error { return nil }, "no such file"},
		{"readable", func(dir string) error { return os.Mkdir(dir, 0o755) }, "chmod 700 it"},
		{"a link", func(dir string) error { return os.Symlink(t.TempDir(), dir) }, "not a directory"},
		{"of another user", func(dir string) error {
			if os.Geteuid() != 0 {
				t.Skip("needs root to make a directory of another user")
			}
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			return os.Chown(dir, 65534, 65534)
		}, "belongs to another user"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			if filepath.Dir(temporary()) != os.TempDir() {
				t.Fatal(temporary())
			}
			if err := tt.make(temporary()); err != nil {
				t.Fatal(err)
			}
			err := own(temporary())
			if tt.want != "no such file" { // a missing default directory is made by the run
				err = Check(temporary())
			}
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
