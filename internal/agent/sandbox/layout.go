package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// A step makes one entry of the new root.
type step struct {
	kind stepKind
	path string // in the jail
	link string // of a symlink
	mode fs.FileMode
}

type stepKind int

const (
	makeDir  stepKind = iota // a directory of our own
	makeFile                 // an empty file of our own, to mount on
	bindDir                  // the host's directory, with all mounted beneath it
	bindFile                 // the host's file, socket or device
	makeLink                 // the host's symbolic link, repeated
)

// target is a mount as it will be made: its path free of symbolic links.
type target struct {
	Mount
	path string
	file bool // the source is no directory
}

// layout plans a root in which every target's mount point exists. Directories
// of the host appear whole, except those in which a mount point is missing:
// these are made anew, with each of their entries brought in by itself, all
// the way down to the missing one. It reads the host's file system at host
// ("/", or a test's) and changes nothing.
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
	// Parents first: what lies inside another mount is that mount's affair.
	sort.SliceStable(targets, func(i, j int) bool { return targets[i].path < targets[j].path })
	for i, t := range targets {
		if !insideEarlier(targets[:i], t.path) {
			b.need(t)
		}
	}
	if err := b.walk("/"); err != nil {
		return nil, nil, err
	}
	return b.steps, targets, nil
}

// insideEarlier says whether p lies in the mount of one of ts.
func insideEarlier(ts []target, p string) bool {
	for _, t := range ts {
		if t.Source != "" && within(t.path, p) {
			return true
		}
	}
	return false
}

// within says whether p is dir or beneath it.
func within(dir, p string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

type builder struct {
	host  string
	split map[string]bool // directories of the host to be made anew
	made  map[string]step // what the host does not have
	steps []step
}

// resolve checks a mount and follows the symbolic links of its target as far
// as it exists on the host.
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

// need notes what must be made for t, and which directories be split for it.
func (b *builder) need(t target) {
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

// walk makes the entries of dir, which is split: the host's and the missing.
func (b *builder) walk(dir string) error {
	entries, err := os.ReadDir(filepath.Join(b.host, dir))
	if err != nil {
		return fmt.Errorf("a mount point is wanted in %s, which cannot be listed: %w", dir, err)
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
	var missing []string
	for p := range b.made {
		if path.Dir(p) == dir {
			missing = append(missing, p)
		}
	}
	sort.Strings(missing)
	for _, p := range missing {
		b.missing(p)
	}
	return nil
}

// missing makes p and what is missing beneath it.
func (b *builder) missing(p string) {
	b.steps = append(b.steps, b.made[p])
	var below []string
	for q := range b.made {
		if path.Dir(q) == p && q != p {
			below = append(below, q)
		}
	}
	sort.Strings(below)
	for _, q := range below {
		b.missing(q)
	}
}

// entry brings in one entry of the host.
func (b *builder) entry(p string, e fs.DirEntry) error {
	s := step{path: p}
	switch {
	case b.split[p]:
		fi, err := e.Info()
		if err != nil {
			return gone(err)
		}
		b.steps = append(b.steps, step{kind: makeDir, path: p, mode: fi.Mode().Perm()})
		return b.walk(p)
	case p == "/proc":
		s.kind, s.mode = makeDir, 0o555 // mounted anew
	case e.Type()&fs.ModeSymlink != 0:
		link, err := os.Readlink(filepath.Join(b.host, p))
		if err != nil {
			return gone(err)
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

// gone forgives what has vanished since it was listed.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
