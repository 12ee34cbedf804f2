package bundle

import (
	"container/list"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	// segmentSize is where a new segment of events begins.
	segmentSize = 64 << 20
	// maxOpen bounds the files held open for appending.
	maxOpen = 32
)

// files appends to the files of a bundle. append is for one goroutine; sync
// may run beside it.
type files struct {
	root    string
	segment int // number of the current segment

	mu     sync.Mutex
	byName map[string]*list.Element // of *openFile
	recent *list.List               // front: used last
}

type openFile struct {
	name  string
	f     *os.File
	size  int64 // length up to the last complete append
	dirty bool
	busy  int // syncs under way: not to be closed
}

func newFiles(root string) *files {
	return &files{root: root, segment: 1, byName: make(map[string]*list.Element), recent: list.New()}
}

func segmentName(n int) string { return fmt.Sprintf("%s/%06d%s", eventsDir, n, segmentSuffix) }

// append writes b whole or, on failure, cuts the file back to where it was.
func (fs *files) append(name string, b []byte) error {
	events := name == eventsDir
	if events {
		name = segmentName(fs.segment)
	}
	of, err := fs.open(name)
	if err != nil {
		return err
	}
	if _, err := of.f.Write(b); err != nil {
		return errors.Join(err, of.f.Truncate(of.size))
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	of.size += int64(len(b))
	of.dirty = true
	if events && of.size >= segmentSize {
		fs.segment++
	}
	return nil
}

// open returns the open file of that name, closing the least recently used
// one beyond maxOpen.
func (fs *files) open(name string) (*openFile, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if e, ok := fs.byName[name]; ok {
		fs.recent.MoveToFront(e)
		return e.Value.(*openFile), nil
	}
	full := filepath.Join(fs.root, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	of := &openFile{name: name, f: f, size: st.Size()}
	fs.byName[name] = fs.recent.PushFront(of)
	return of, fs.evict()
}

// evict closes old files; what they hold is synced when the bundle closes.
func (fs *files) evict() error {
	for e := fs.recent.Back(); e != nil && fs.recent.Len() > maxOpen; {
		of, prev := e.Value.(*openFile), e.Prev()
		if of.busy == 0 && e != fs.recent.Front() {
			fs.recent.Remove(e)
			delete(fs.byName, of.name)
			if err := of.f.Close(); err != nil {
				return err
			}
		}
		e = prev
	}
	return nil
}

// sync makes durable what was appended before the call.
func (fs *files) sync() error {
	fs.mu.Lock()
	var dirty []*openFile
	for e := fs.recent.Front(); e != nil; e = e.Next() {
		if of := e.Value.(*openFile); of.dirty {
			of.dirty = false
			of.busy++
			dirty = append(dirty, of)
		}
	}
	fs.mu.Unlock()
	var errs []error
	for _, of := range dirty {
		errs = append(errs, of.f.Sync())
		fs.mu.Lock()
		of.busy--
		fs.mu.Unlock()
	}
	return errors.Join(errs...)
}

// close closes all files.
func (fs *files) close() error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var errs []error
	for e := fs.recent.Front(); e != nil; e = e.Next() {
		errs = append(errs, e.Value.(*openFile).f.Close())
	}
	fs.recent.Init()
	clear(fs.byName)
	return errors.Join(errs...)
}

const (
	// longestRaw bounds the path of a tool's file, longestName each name in it:
	// bundles are copied to other file systems, and by HTTP.
	longestRaw, longestName = 900, 255
)

// rawPath is where a tool's file goes. Names come from templates and from
// inside containers and are not trusted. What no text can have is escaped.
func rawPath(instance, container, file string) (string, error) {
	for _, name := range []string{instance, container} {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
			return "", fmt.Errorf("record: %q is no name for a directory of raw/", name)
		}
	}
	inside := strings.TrimPrefix(file, "/")
	if inside == "" || strings.ContainsRune(inside, 0) || !filepath.IsLocal(inside) || path.Clean(inside) != inside {
		return "", fmt.Errorf("record: output file %q of %s/%s: its name would lead out of the bundle or is not clean", file, instance, container)
	}
	to := path.Join(rawDir, instance, container, plainName(inside))
	for name := range strings.SplitSeq(to, "/") {
		if len(to) > longestRaw || len(name) > longestName {
			return "", fmt.Errorf("record: output file %.80q… of %s/%s: its name is too long "+
				"(%d bytes, %d for each directory)", file, instance, container, longestRaw, longestName)
		}
	}
	return to, nil
}

// plainName writes bytes that a manifest cannot name, and characters that would
// steer a terminal, as %XX; and the % of what looks like that.
func plainName(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		odd := r == utf8.RuneError && n == 1 || !unicode.IsPrint(r)
		if r == '%' && escaped.MatchString(name[i:]) {
			odd = true
		}
		for _, c := range []byte(name[i : i+n]) {
			if odd {
				fmt.Fprintf(&b, "%%%02X", c)
			} else {
				b.WriteByte(c)
			}
		}
		i += n
	}
	return b.String()
}

var escaped = regexp.MustCompile(`^%[0-9A-F]{2}`)
