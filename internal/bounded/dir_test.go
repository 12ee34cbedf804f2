package bounded

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// hostile makes a directory with a file "good", something else of each other name, and a file "canary" outside. It
// returns both paths.
func hostile(t *testing.T) (dir Dir, canary string) {
	t.Helper()
	top := t.TempDir()
	dir, canary = Dir(filepath.Join(top, "dir")), filepath.Join(top, "canary")
	big, err := os.Create(filepath.Join(top, "big"))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.MkdirAll(dir.Path("folder/deep"), 0o755),
		os.WriteFile(dir.Path("good"), []byte("good"), 0o644),
		os.WriteFile(dir.Path("folder/file"), []byte("file"), 0o644),
		os.WriteFile(canary, []byte("sing"), 0o644),
		os.Symlink("good", dir.Path("inside")),
		os.Symlink("../canary", dir.Path("outside")),
		os.Symlink(canary, dir.Path("absolute")),
		os.Symlink("../new", dir.Path("dangling")),
		os.Symlink("/dev/zero", dir.Path("zero")),
		os.Symlink(top, dir.Path("up")),
		syscall.Mkfifo(dir.Path("pipe"), 0o644),
		os.Link(canary, dir.Path("hard")),
		big.Truncate(1 << 40),
		os.Rename(big.Name(), dir.Path("sparse")),
		big.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir, canary
}

// hostileNames are the names that must not open, with a part of the error.
var hostileNames = map[string]string{
	"inside": "it is a symbolic link, not a file", "outside": "it is a symbolic link", "absolute": "it is a symbolic link",
	"dangling": "it is a symbolic link", "zero": "it is a symbolic link", "pipe": "it is a named pipe, not a file",
	"hard": "2 names (hard links): copy the directory with cp -r", "folder": "it is a directory, not a file",
	"up/canary": "escapes", "../canary": "escapes", "up/dir/good": "escapes",
}

// TestDirOpen checks that only regular files are opened, at once and with an error that says what else is there.
func TestDirOpen(t *testing.T) {
	dir, canary := hostile(t)
	open := map[string]func(string) error{
		"Open": func(name string) error {
			f, err := dir.Open(name)
			if err == nil {
				_ = f.Close()
			}
			return err
		},
		"Append": func(name string) error {
			f, err := dir.Append(name)
			if err == nil {
				_ = f.Truncate(0)
				_ = f.Close()
			}
			return err
		},
		"ReadFile": func(name string) error { _, err := dir.ReadFile(name, 10); return err },
		"FS": func(name string) error {
			if name == "folder" || !fs.ValidPath(name) {
				return errors.New(hostileNames[name]) // FS opens directories, and refuses the other names
			}
			_, err := fs.ReadFile(dir.FS(), name)
			return err
		},
	}
	for function, do := range open {
		for name, want := range hostileNames {
			err := do(name)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %v, want %q", function, name, err, want)
			}
			var at *fs.PathError
			if function != "FS" && (!errors.As(err, &at) || at.Path != dir.Path(name)) {
				t.Errorf("%s %s: %v does not name %s", function, name, err, dir.Path(name))
			}
		}
		if err := do("sparse"); err == nil || !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s of a sparse file of 1 TiB: %v", function, err)
		}
		if err := do("good"); err != nil {
			t.Errorf("%s: %v", function, err)
		}
		if err := do("none"); function != "Append" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s of a missing file: %v", function, err)
		}
		_ = os.Remove(dir.Path("none"))
	}
	unchanged(t, canary)
}

// TestDirWrite checks that files are written in the place of what has their name, or of a prepared temporary file, and
// never through it.
func TestDirWrite(t *testing.T) {
	for _, name := range []string{"good", "inside", "outside", "absolute", "dangling", "zero", "pipe", "hard", "new/file"} {
		dir, canary := hostile(t)
		if err := os.Symlink(canary, dir.Path(name+tmpSuffix)); err != nil && name != "new/file" {
			t.Fatal(err)
		}
		if err := dir.WriteFile(name, []byte("text")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := dir.ReadFile(name, 10); err != nil || string(got) != "text" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if dir.Has(name + tmpSuffix) {
			t.Errorf("%s: the temporary file is left", name)
		}
		unchanged(t, canary)
	}
	dir, canary := hostile(t)
	for name, want := range map[string]string{"up/canary": "escapes", "up/new": "escapes", "../new": "escapes",
		"folder": "is a directory"} {
		err := dir.WriteFile(name, []byte("text"))
		if err == nil || !strings.Contains(err.Error(), want) && !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	broken := errors.New("broken")
	err := dir.Replace("good", func(w io.Writer) error { _, _ = w.Write([]byte("half")); return broken })
	if got, _ := dir.ReadFile("good", 10); !errors.Is(err, broken) || string(got) != "good" || dir.Has("good.tmp") {
		t.Errorf("after an error: %v, %q, temporary file %v", err, got, dir.Has("good.tmp"))
	}
	unchanged(t, canary)
}

// TestDirItself checks that the directory may be a link, but not a file or a named pipe, for which nothing waits.
func TestDirItself(t *testing.T) {
	dir, _ := hostile(t)
	link := Dir(filepath.Join(t.TempDir(), "link"))
	if err := os.Symlink(string(dir), string(link)); err != nil {
		t.Fatal(err)
	}
	if got, err := link.ReadFile("folder/file", 10); err != nil || string(got) != "file" {
		t.Errorf("through a link: %q, %v", got, err)
	}
	for name, want := range map[string]error{"pipe": syscall.ENOTDIR, "good": syscall.ENOTDIR, "none": fs.ErrNotExist} {
		if _, err := Dir(dir.Path(name)).ReadDir("."); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if _, err := dir.Sub("up"); err == nil {
		t.Error("a link to the directory above is a directory inside")
	}
	if sub, err := dir.Sub("folder"); err != nil || string(sub) != dir.Path("folder") {
		t.Errorf("%s, %v", sub, err)
	}
	if err := dir.Rename("good", "up/good"); err == nil || !dir.Has("good") {
		t.Errorf("a file was renamed to one outside: %v", err)
	}
}

// TestLinkedFS checks that links are followed, and that nothing waits for a named pipe.
func TestLinkedFS(t *testing.T) {
	dir, _ := hostile(t)
	for name, want := range map[string]string{"good": "good", "outside": "sing", "hard": "sing", "up/canary": "sing"} {
		if got, err := fs.ReadFile(LinkedFS(string(dir)), name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{"pipe": "a named pipe, not a file", "zero": "a device, not a file"} {
		if _, err := fs.ReadFile(LinkedFS(string(dir)), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if list, err := fs.ReadDir(LinkedFS(string(dir)), "up/dir/folder"); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
}

func unchanged(t *testing.T, canary string) {
	t.Helper()
	if got, err := os.ReadFile(canary); err != nil || string(got) != "sing" {
		t.Errorf("the file outside: %q, %v", got, err)
	}
	if list, err := os.ReadDir(filepath.Dir(canary)); err != nil || len(list) != 2 {
		t.Errorf("beside the file outside: %v, %v", list, err)
	}
}
