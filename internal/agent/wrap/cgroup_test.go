package wrap

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCgroupFile: files of the own group are found in hierarchies of version 2 and 1, on the host and in a container
// that sees its own group as the root.
func TestCgroupFile(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"pod/app", "."} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, dir, "io.stat"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ name, own, controller, file, want string }{
		{"version 2", "0::/pod/app\n", "", "io.stat", "pod/app/io.stat"},
		{"version 2, in a container", "0::/\n", "", "io.stat", "io.stat"},
		{"version 2, a path of the host", "0::/kubepods/x\n", "", "io.stat", "io.stat"},
		{"version 2 beside version 1", "7:memory:/a\n0::/pod/app\n", "", "io.stat", "pod/app/io.stat"},
		{"version 1", "7:memory:/pod/app\n", "memory", "io.stat", "pod/app/io.stat"},
		{"no version 2", "7:memory:/pod/app\n", "", "io.stat", ""},
		{"no such file", "0::/pod/app\n", "", "io.max", ""},
	} {
		want := tt.want
		if want != "" {
			want = filepath.Join(root, want)
		}
		if got := fileOf(tt.own, tt.controller, root, tt.file); got != want {
			t.Errorf("%s: %q, want %q", tt.name, got, want)
		}
	}
}
