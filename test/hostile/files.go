package hostile

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode"
)

// odd is a way to replace a file by something that is none.
type odd struct {
	make func(path string, o *Outside) error
	want string // what the error of a command that reads it has
}

func linked(to func(*Outside) string) func(string, *Outside) error {
	return func(path string, o *Outside) error { return os.Symlink(to(o), path) }
}

func node(mode uint32, dev int) func(string, *Outside) error {
	return func(path string, _ *Outside) error { return syscall.Mknod(path, mode|0o644, dev) }
}

// oddities are all kinds of files.
var oddities = map[string]odd{
	"link":      {linked((*Outside).file), "symbolic link"},
	"zero":      {linked(func(*Outside) string { return "/dev/zero" }), "symbolic link"},
	"dangling":  {linked(func(o *Outside) string { return filepath.Join(o.Dir, "new") }), "symbolic link"},
	"pipe":      {node(syscall.S_IFIFO, 0), "named pipe"},
	"socket":    {node(syscall.S_IFSOCK, 0), "socket"},
	"device":    {node(syscall.S_IFCHR, 1<<8|5), "device"}, // another node of /dev/zero
	"folder":    {func(path string, _ *Outside) error { return os.Mkdir(path, 0o755) }, "directory"},
	"hard link": {func(path string, o *Outside) error { return os.Link(o.file(), path) }, "cp -r"},
	"sparse": {func(path string, _ *Outside) error {
		f, err := os.Create(path)
		if err == nil {
			err = f.Truncate(1 << 40)
			_ = f.Close()
		}
		return err
	}, "sparse file"},
}

// extra are names of files that a good bundle of a kind need not have: they come and go, or are of earlier versions.
var extra = map[string][]string{
	Local: {".reserve", "report.html", "ledger", "events/00000000.seg", "remote-write/other.frames",
		"../bundle.outbox"},
	Study:    {".lock", "report.html", "002/run.json"},
	Imported: {"report.html"},
}

// temporary is the suffix of what is not yet whole.
const temporary = ".tmp"

// names are the names of files that a kind of bundle has or may have, and of their temporary forms. Of kinds that are
// as Local otherwise, they are those that matter to commands that treat them in another way.
func (m *Maker) names(tb testing.TB, kind string) (list []string) {
	tb.Helper()
	switch kind {
	case Cluster:
		list = []string{"ledger", "run.json"}
	case Object:
		list = []string{"run.json"}
	default:
		err := filepath.WalkDir(m.bases[kind], func(path string, d fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(m.bases[kind], path)
			ofTrial := kind == Study && strings.HasPrefix(rel, "001/") && rel != "001/run.json"
			if err == nil && d.Type().IsRegular() && !ofTrial {
				list = append(list, rel)
			}
			return err
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	list = append(list, extra[kind]...)
	for _, name := range slices.Clone(list) {
		list = append(list, name+temporary)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// files are bundles with something that is no file in the place of each.
func (m *Maker) files(tb testing.TB) (list []Variant) {
	tb.Helper()
	for _, kind := range Kinds {
		for _, name := range m.names(tb, kind) {
			for _, what := range slices.Sorted(maps.Keys(oddities)) {
				k := oddities[what]
				list = append(list, Variant{Name: what + " for " + name, Group: "files", Kind: kind, File: name, Want: k.want,
					make: func(tb testing.TB, dir string, o *Outside) {
						path := filepath.Join(dir, filepath.FromSlash(name))
						_ = os.RemoveAll(path)
						if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
							tb.Fatal(err)
						}
						if err := k.make(path, o); err != nil && what == "device" {
							tb.Skip("cannot make a device: ", err)
						} else if err != nil {
							tb.Fatal(err)
						}
					}})
			}
		}
	}
	return list
}

// folders are bundles with a link, to a directory outside, in the place of each of their directories.
func (m *Maker) folders(tb testing.TB) (list []Variant) {
	tb.Helper()
	for _, kind := range []string{Local, Study} {
		entries, err := os.ReadDir(m.bases[kind])
		if err != nil {
			tb.Fatal(err)
		}
		for _, e := range entries {
			if !e.IsDir() {
				continue
			}
			for _, with := range []string{"nothing", "the same files"} {
				list = append(list, Variant{Name: "link for " + e.Name() + " to a folder with " + with,
					Group: "folders", Kind: kind, make: func(tb testing.TB, dir string, o *Outside) {
						path, to := filepath.Join(dir, e.Name()), filepath.Join(o.Dir, "folder")
						err := os.Rename(path, to)
						if err == nil && with == "nothing" {
							err = os.RemoveAll(to)
						}
						if err == nil {
							err = os.MkdirAll(to, 0o755)
						}
						if err == nil {
							err = os.Symlink(to, path)
						}
						if err != nil {
							tb.Fatal(err)
						}
					}})
			}
		}
	}
	return list
}

// strange are bundles with further files, whose names are Evil, and a folder with values of that name.
func strange() (list []Variant) {
	name := strings.ReplaceAll(Evil, "/", "_")
	for _, at := range []string{"", "raw/fio-0/fio", "outputs", "remote-write", "events", "999"} {
		list = append(list, Variant{Name: "evil name in " + at, Group: "strings", Kind: Local,
			make: func(tb testing.TB, dir string, _ *Outside) {
				write(tb, filepath.Join(dir, filepath.FromSlash(at), name), "{}\n")
			}})
	}
	return append(list, Variant{Name: "evil cells", Group: "strings", Kind: Imported,
		make: func(tb testing.TB, dir string, _ *Outside) {
			if err := os.RemoveAll(dir); err != nil {
				tb.Fatal(err)
			}
			// An import refuses control characters as no text.
			cell := strings.Map(func(r rune) rune {
				if unicode.IsControl(r) {
					return -1
				}
				return r
			}, Evil)
			writeImported(tb, dir, cell, "b")
		}})
}
