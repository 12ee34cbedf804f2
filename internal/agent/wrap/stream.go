package wrap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// maxFiles bounds the streamed files, and so the open descriptors.
const maxFiles = 512

// chunksPerTurn is how many chunks of one file are sent before the next file.
const chunksPerTurn = 16

// streamer sends files as they grow. It reads from the file system, so a slow runner never blocks the
// process, and it buffers one chunk.
//
// A file is an inode: a renamed file continues under its first name; a new file at an old name, and a
// truncated file, are delivered from their start as "<name>~1", "<name>~2" and so on. A file that existed
// before the process is sent only once it has changed. A file that is truncated and regrows within one poll
// interval (200 ms) is not detected. Bytes beyond the limit are counted by the file's size and never read.
type streamer struct {
	patterns []string
	send     sendFile
	log      func(string)
	out      *output

	before map[fileID]os.FileInfo // matches before the start
	tails  map[fileID]*tail
	order  []*tail
	// number of files per path
	names       map[string]int
	buf         []byte
	limitLogged bool // maxFiles was reached and logged
}

type fileID struct{ dev, ino uint64 }

type tail struct {
	id        fileID
	file      *os.File
	path      string // where it was first found
	name      string // name of the delivered file
	offset    int64
	failed    bool
	announced bool // a message with its name was sent
	// admitted: all of its bytes are within the limit.
	admitted bool
	// cut: no more of it is sent; discarded counts the bytes since.
	cut       bool
	discarded int64
}

func newStreamer(patterns []string, send sendFile, log func(string), out *output) *streamer {
	s := &streamer{
		patterns: patterns, send: send, log: log, out: out,
		before: map[fileID]os.FileInfo{}, tails: map[fileID]*tail{}, names: map[string]int{},
		buf: make([]byte, protocol.Chunk),
	}
	s.match(func(_ string, id fileID, fi os.FileInfo) { s.before[id] = fi })
	return s
}

// Follow streams an open file, whose bytes are within the limit, under the given name from its start. The
// streamer closes it.
func (s *streamer) Follow(f *os.File, name string) {
	s.order = append(s.order, &tail{file: f, path: name, name: s.unique(name), announced: true, admitted: true})
}

// Poll looks for new files and sends growth; more reports that there is more to send at once. An error means
// that the runner is lost.
func (s *streamer) Poll() (more bool, err error) {
	s.match(s.followNew)
	kept := s.order[:0]
	for _, t := range s.order {
		moved, err := s.advance(t)
		if err != nil {
			return false, err
		}
		more = more || moved
		if !moved && (t.failed || deleted(t.file)) {
			t.file.Close()
			delete(s.tails, t.id)
			continue
		}
		kept = append(kept, t)
	}
	s.order = kept
	return more, nil
}

// Drain sends the rest once no file grows any more.
func (s *streamer) Drain() error {
	for {
		more, err := s.Poll()
		if err != nil {
			return err
		}
		if !more {
			return s.sendEmpty()
		}
	}
}

// sendEmpty announces the files that stayed empty.
func (s *streamer) sendEmpty() error {
	for _, t := range s.order {
		if !t.announced {
			t.announced = true
			if err := s.send(t.name, 0, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// match calls fn for each regular file that a pattern matches.
func (s *streamer) match(fn func(path string, id fileID, fi os.FileInfo)) {
	for _, pattern := range s.patterns {
		paths, _ := filepath.Glob(pattern) // the runner validated the patterns
		for _, path := range paths {
			fi, err := os.Stat(path)
			if err == nil && fi.Mode().IsRegular() {
				fn(path, idOf(fi), fi)
			}
		}
	}
}

// followNew starts to follow a file.
func (s *streamer) followNew(path string, id fileID, fi os.FileInfo) {
	if s.tails[id] != nil {
		return
	}
	if old := s.before[id]; old != nil && old.Size() == fi.Size() && old.ModTime().Equal(fi.ModTime()) {
		return
	}
	if len(s.order) >= maxFiles {
		if !s.limitLogged {
			s.log(fmt.Sprintf("outputs: more than %d files match %s: ignoring the rest, from %s",
				maxFiles, strings.Join(s.patterns, " "), path))
		}
		s.limitLogged = true
		return
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if !os.IsNotExist(err) && s.names[path] == 0 {
			s.names[path]++ // log once
			s.log(fmt.Sprintf("outputs: %v", err))
		}
		return
	}
	if opened, err := f.Stat(); err != nil || idOf(opened) != id { // replaced meanwhile: the next poll finds it
		f.Close()
		return
	}
	t := &tail{id: id, file: f, path: path, name: s.unique(path)}
	s.tails[id] = t
	s.order = append(s.order, t)
}

// unique returns path the first time and path~N after that.
func (s *streamer) unique(path string) string {
	n := s.names[path]
	s.names[path]++
	if n == 0 {
		return path
	}
	return fmt.Sprintf("%s~%d", path, n)
}

// advance sends at most chunksPerTurn chunks of a file's growth.
func (s *streamer) advance(t *tail) (moved bool, err error) {
	if t.cut {
		s.countDiscarded(t)
		return false, nil
	}
	if fi, err := t.file.Stat(); err == nil && fi.Size() < t.offset {
		name := s.unique(t.path)
		s.log(fmt.Sprintf("outputs: %s was truncated from %d to %d bytes: continuing as %s from its start", t.name,
			t.offset, fi.Size(), name))
		t.name, t.offset = name, 0
	}
	for range chunksPerTurn {
		n, err := t.file.ReadAt(s.buf, t.offset)
		kept := s.take(t, n)
		if kept > 0 {
			if err := s.send(t.name, t.offset, s.buf[:kept]); err != nil {
				return false, err
			}
			t.offset += int64(kept)
			moved, t.announced = true, true
		}
		if kept < n {
			t.cut = true
			s.countDiscarded(t)
			return moved, nil
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !t.failed {
				t.failed = true
				s.log(fmt.Sprintf("outputs: %s: %v", t.name, err))
			}
			return moved, nil
		}
	}
	return moved, nil
}

// take returns how many of the next n bytes of a file are sent.
func (s *streamer) take(t *tail, n int) int {
	if !t.admitted {
		return s.out.allow(t.name, n)
	}
	if s.out.isRefused(t.name) {
		return 0
	}
	return n
}

// countDiscarded counts the growth of a cut file.
func (s *streamer) countDiscarded(t *tail) {
	fi, err := t.file.Stat()
	if err != nil {
		return
	}
	if grown := fi.Size() - t.offset - t.discarded; grown > 0 {
		t.discarded += grown
		s.out.addDiscarded(t.name, grown)
	}
}

// Close closes all files.
func (s *streamer) Close() {
	for _, t := range s.order {
		t.file.Close()
	}
	s.order = nil
}

// deleted reports whether the file has no name left.
func deleted(f *os.File) bool {
	fi, err := f.Stat()
	if err != nil {
		return true
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 0
}

func idOf(fi os.FileInfo) fileID {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return fileID{uint64(st.Dev), st.Ino} //nolint:unconvert // 32 bits on some platforms
	}
	return fileID{}
}

// sendFile delivers bytes of a file; an error means that the runner is lost.
type sendFile func(name string, offset int64, data []byte) error
