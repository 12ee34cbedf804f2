package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// step creates one entry of the new root.
type step struct {
	kind stepKind
	path string // in the sandbox
	link string // of a symlink
	mode fs.FileMode
}

type stepKind int

const (
	makeDir  stepKind = iota // a new directory
	makeFile                 // a new empty file, to mount on
	bindDir                  // the host's directory with the mounts beneath it
	bindFile                 // the host's file, socket or device
	makeLink                 // a copy of the host's symbolic link
)

// target is a mount whose path is free of symbolic links.
type target struct {
	Mount
	path string
	file bool // the source is not a directory
}

// layout plans a root in which every target's mount point exists. Directories of the host are bound whole,
// except those in which a mount point is missing: they are created, and each of their entries is bound by
// itself, down to the missing one. It reads the host's file system at host ("/", or a test's) and changes
// nothing.
func layout(host string, mounts []Mount) ([]step, []target, error) {
	b := &builder{host: host, split: map[string]bool{"/": true}, made: map[string]step{}}
	var targets []target
	for _, m := range mounts {
		t, err := b.resolve(m)
		if err != nil {
			return nil, nil, err
		}
		targets = append(targets, t)
	}
	// Parents first: a target inside another mount needs no mount point here.
	slices.SortStableFunc(targets, func(a, b target) int { return strings.Compare(a.path, b.path) })
	for i, t := range targets {
		if !isCovered(targets[:i], t.path) {
			b.addMissing(t)
		}
	}
	if err := b.walk("/"); err != nil {
		return nil, nil, err
	}
	return b.steps, targets, nil
}

// isCovered reports whether p lies in the mount of one of ts.
func isCovered(ts []target, p string) bool {
	for _, t := range ts {
		if t.Source != "" && within(t.path, p) {
			return true
		}
	}
	return false
}

// within reports whether p is dir or beneath it.
func within(dir, p string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

type builder struct {
	host  string
	split map[string]bool // directories of the host to create anew
	made  map[string]step // entries that the host lacks
	steps []step
}

// resolve checks a mount and follows the symbolic links of its target as far as it exists on the host.
func (b *builder) resolve(m Mount) (target, error) {
	if !path.IsAbs(m.Target) || path.Clean(m.Target) == "/" {
		return target{}, fmt.Errorf("mount path %q must be an absolute path below /", m.Target)
	}
	t := target{Mount: m}
	if m.Source != "" {
		fi, err := os.Stat(m.Source)
		if err != nil {
			return t, fmt.Errorf("volume for %s: %w", m.Target, err)
		}
		t.file = !fi.IsDir()
	}
	have, missing := path.Clean(m.Target), ""
	for {
		real, err := filepath.EvalSymlinks(filepath.Join(b.host, have))
		if err == nil {
			if b.host != "/" {
				real = "/" + strings.TrimPrefix(strings.TrimPrefix(real, b.host), "/")
			}
			t.path = path.Join(real, missing)
			break
		}
		have, missing = path.Dir(have), path.Join(path.Base(have), missing)
	}
	if t.path == "/proc" || strings.HasPrefix(t.path, "/proc/") {
		return t, fmt.Errorf("mount path %s: nothing can be mounted in /proc", m.Target)
	}
	return t, nil
}

// addMissing records the entries to create for t and the directories to split.
func (b *builder) addMissing(t target) {
	fi, err := os.Lstat(filepath.Join(b.host, t.path))
	if err == nil && fi.IsDir() == !t.file {
		return
	}
	kind := makeDir
	if t.file {
		kind = makeFile
	}
	b.made[t.path] = step{kind: kind, path: t.path, mode: 0o755}
	for p := path.Dir(t.path); ; p = path.Dir(p) {
		if fi, err := os.Lstat(filepath.Join(b.host, p)); err == nil && fi.IsDir() {
			b.split[p] = true
		} else {
			b.made[p] = step{kind: makeDir, path: p, mode: 0o755}
		}
		if p == "/" {
			return
		}
	}
}

// walk adds the entries of a split directory: the host's and the missing ones.
func (b *builder) walk(dir string) error {
	entries, err := os.ReadDir(filepath.Join(b.host, dir))
	if err != nil {
		return fmt.Errorf("list %s, which needs a mount point: %w", dir, err)
	}
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		if _, replaced := b.made[p]; replaced {
			continue
		}
		if err := b.entry(p, e); err != nil {
			return err
		}
	}
	for _, p := range b.madeIn(dir) {
		b.missing(p)
	}
	return nil
}

// madeIn lists the missing entries directly in dir, sorted.
func (b *builder) madeIn(dir string) []string {
	var all []string
	for p := range b.made {
		if path.Dir(p) == dir && p != dir {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	return all
}

// missing adds p and the missing entries beneath it.
func (b *builder) missing(p string) {
	b.steps = append(b.steps, b.made[p])
	for _, q := range b.madeIn(p) {
		b.missing(q)
	}
}

// entry adds one entry of the host.
func (b *builder) entry(p string, e fs.DirEntry) error {
	s := step{path: p}
	switch {
	case b.split[p]:
		fi, err := e.Info()
		if err != nil {
			return ignoreNotExist(err)
		}
		b.steps = append(b.steps, step{kind: makeDir, path: p, mode: fi.Mode().Perm()})
		return b.walk(p)
	case p == "/proc":
		s.kind, s.mode = makeDir, 0o555 // mounted by mountProc
	case e.Type()&fs.ModeSymlink != 0:
		link, err := os.Readlink(filepath.Join(b.host, p))
		if err != nil {
			return ignoreNotExist(err)
		}
		s.kind, s.link = makeLink, link
	case e.IsDir():
		s.kind = bindDir
	default:
		s.kind = bindFile
	}
	b.steps = append(b.steps, s)
	return nil
}

// ignoreNotExist ignores an entry that vanished since it was listed.
func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
