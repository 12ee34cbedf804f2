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

	"github.com/cnsbench/cnsbench/internal/bounded"
)

const (
	// segmentSize is the size at which a new segment of events begins.
	segmentSize = 64 << 20
	// maxOpen bounds the files held open for appending.
	maxOpen = 32
)

// files appends to the files of a bundle. append is for one goroutine; sync may run concurrently.
type files struct {
	root    bounded.Dir
	segment int   // number of the current segment
	limit   int64 // the size at which a new segment begins

	mu     sync.Mutex
	byName map[string]*list.Element // of *openFile
	lru    *list.List               // front: most recently used
}

type openFile struct {
	name  string
	f     *os.File
	size  int64 // length after the last complete append
	dirty bool
	full  bool // a segment that is not appended to again
	busy  int  // pending syncs: must not be closed
}

func newFiles(root bounded.Dir) *files {
	return &files{root: root, segment: 1, limit: segmentSize, byName: make(map[string]*list.Element), lru: list.New()}
}

func segmentName(n int) string { return fmt.Sprintf("%s/%06d%s", eventsDir, n, segmentSuffix) }

// append writes b whole or, on failure, truncates the file to its previous size.
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
	if events && of.size >= fs.limit {
		fs.segment++
		of.full = true
	}
	return nil
}

// open returns the open file of that name and closes the least recently used one beyond maxOpen.
func (fs *files) open(name string) (*openFile, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if e, ok := fs.byName[name]; ok {
		fs.lru.MoveToFront(e)
		return e.Value.(*openFile), nil
	}
	if err := fs.root.MkdirAll(path.Dir(name)); err != nil {
		return nil, err
	}
	f, err := fs.root.Append(name)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	of := &openFile{name: name, f: f, size: st.Size()}
	fs.byName[name] = fs.lru.PushFront(of)
	return of, fs.evict()
}

// evict closes files; their data is synced when the bundle closes.
func (fs *files) evict() error {
	for e := fs.lru.Back(); e != nil && fs.lru.Len() > maxOpen; {
		of, prev := e.Value.(*openFile), e.Prev()
		if of.busy == 0 && e != fs.lru.Front() {
			fs.lru.Remove(e)
			delete(fs.byName, of.name)
			if err := of.f.Close(); err != nil {
				return err
			}
		}
		e = prev
	}
	return nil
}

// sync makes data durable that was appended before the call, and closes segments that are full.
func (fs *files) sync() error {
	fs.mu.Lock()
	var dirty []*openFile
	for e := fs.lru.Front(); e != nil; e = e.Next() {
		if of := e.Value.(*openFile); of.dirty {
			of.dirty = false
			of.busy++
			dirty = append(dirty, of)
		}
	}
	fs.mu.Unlock()
	var errs []error
	for _, of := range dirty {
		errs = append(errs, of.f.Sync(), fs.synced(of))
	}
	return errors.Join(errs...)
}

func (fs *files) synced(of *openFile) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	of.busy--
	if !of.full || of.dirty || of.busy > 0 {
		return nil
	}
	fs.lru.Remove(fs.byName[of.name])
	delete(fs.byName, of.name)
	return of.f.Close()
}

func (fs *files) close() error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var errs []error
	for e := fs.lru.Front(); e != nil; e = e.Next() {
		errs = append(errs, e.Value.(*openFile).f.Close())
	}
	fs.lru.Init()
	clear(fs.byName)
	return errors.Join(errs...)
}

const (
	// maxRawPath bounds the path of a tool's file, maxRawName each name in it: bundles are copied to other
	// file systems and over HTTP.
	maxRawPath, maxRawName = 900, 255
)

// rawPath returns the path of a tool's file. Names come from templates and containers and are not trusted.
// Unprintable characters are escaped.
func rawPath(instance, container, file string) (string, error) {
	for _, name := range []string{instance, container} {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
			return "", fmt.Errorf("bundle: invalid directory name %q in raw/", name)
		}
	}
	inside := strings.TrimPrefix(file, "/")
	if inside == "" || strings.ContainsRune(inside, 0) || !filepath.IsLocal(inside) || path.Clean(inside) != inside {
		return "", fmt.Errorf("bundle: output file %q of %s/%s: want a clean path inside the bundle", file, instance,
			container)
	}
	to := path.Join(rawDir, instance, container, escapeName(inside))
	for name := range strings.SplitSeq(to, "/") {
		if len(to) > maxRawPath || len(name) > maxRawName {
			return "", fmt.Errorf("bundle: output file %.80q… of %s/%s: name too long "+
				"(%d bytes, %d for each directory)", file, instance, container, maxRawPath, maxRawName)
		}
	}
	return to, nil
}

// escapeName encodes invalid UTF-8 and unprintable characters as %XX, and the % of what looks like such a
// code.
func escapeName(name string) string {
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
