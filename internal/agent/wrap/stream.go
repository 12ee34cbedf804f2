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

// maxFiles bounds the files that are streamed, and so the open descriptors.
const maxFiles = 512

// turn is how many chunks of one file are sent before the next has its turn.
const turn = 16

// streamer sends files as they grow. It reads what the process has written to
// the file system, so a slow runner holds up the streamer and never the
// process, and memory is one chunk.
//
// A file is an inode: renamed it goes on under its first name; a new file at
// an old name, and a file that was cut short, are delivered from their start
// as "<name>~1", "<name>~2" and so on. A file that existed before the process
// is sent only once it has changed. A file that is cut and grows beyond its
// old length between two looks (200 ms) is not noticed. What is beyond the bound
// of an output is counted by the file's size and never read.
type streamer struct {
	patterns []string
	send     sendFile
	log      func(string)
	out      *output

	before map[fileID]os.FileInfo // matched before the start
	tails  map[fileID]*tail
	order  []*tail
	used   map[string]int
	buf    []byte
	full   bool // maxFiles was reached and said
}

type fileID struct{ dev, ino uint64 }

type tail struct {
	id     fileID
	file   *os.File
	path   string // where it was first seen
	name   string // what it is delivered as
	offset int64
	failed bool
	sent   bool // something of it, or that it is empty
	// taken: all that is in it is within the bound.
	taken bool
	// cut: nothing more of it is sent; discarded: what was counted of that.
	cut       bool
	discarded int64
}

func newStreamer(patterns []string, send sendFile, log func(string), out *output) *streamer {
	s := &streamer{
		patterns: patterns, send: send, log: log, out: out,
		before: map[fileID]os.FileInfo{}, tails: map[fileID]*tail{}, used: map[string]int{},
		buf: make([]byte, protocol.Chunk),
	}
	s.match(func(_ string, id fileID, fi os.FileInfo) { s.before[id] = fi })
	return s
}

// Follow streams an open file under the given name from its start, whose bytes are
// within the bound already. The streamer closes it.
func (s *streamer) Follow(f *os.File, name string) {
	s.order = append(s.order, &tail{file: f, path: name, name: s.unique(name), sent: true, taken: true})
}

// Poll looks for new files and sends what has grown; more says that there is
// more to send at once. An error is of send: the runner is lost.
func (s *streamer) Poll() (more bool, err error) {
	s.match(s.found)
	kept := s.order[:0]
	for _, t := range s.order {
		moved, err := s.advance(t)
		if err != nil {
			return false, err
		}
		more = more || moved
		if !moved && (t.failed || deleted(t.file)) {
			t.file.Close() // was only read
			delete(s.tails, t.id)
			continue
		}
		kept = append(kept, t)
	}
	s.order = kept
	return more, nil
}

// Drain sends all that is left once nothing grows any more.
func (s *streamer) Drain() error {
	for {
		more, err := s.Poll()
		if err != nil {
			return err
		}
		if !more {
			return s.empty()
		}
	}
}

// empty sends the files that have remained empty, so that they exist.
func (s *streamer) empty() error {
	for _, t := range s.order {
		if !t.sent {
			t.sent = true
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
		paths, _ := filepath.Glob(pattern) // patterns were checked before
		for _, path := range paths {
			fi, err := os.Stat(path)
			if err == nil && fi.Mode().IsRegular() {
				fn(path, idOf(fi), fi)
			}
		}
	}
}

// found begins to follow a file that is not followed yet.
func (s *streamer) found(path string, id fileID, fi os.FileInfo) {
	if s.tails[id] != nil {
		return
	}
	if old := s.before[id]; old != nil && old.Size() == fi.Size() && old.ModTime().Equal(fi.ModTime()) {
		return
	}
	if len(s.order) >= maxFiles {
		if !s.full {
			s.log(fmt.Sprintf("outputs: more than %d files match %s: the rest, from %s, is left out",
				maxFiles, strings.Join(s.patterns, " "), path))
		}
		s.full = true
		return
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if !os.IsNotExist(err) && s.used[path] == 0 {
			s.used[path]++ // said once
			s.log(fmt.Sprintf("outputs: %v", err))
		}
		return
	}
	if opened, err := f.Stat(); err != nil || idOf(opened) != id { // replaced meanwhile: next time
		f.Close() // was only read
		return
	}
	t := &tail{id: id, file: f, path: path, name: s.unique(path)}
	s.tails[id] = t
	s.order = append(s.order, t)
}

// unique is path the first time and path~N after that.
func (s *streamer) unique(path string) string {
	n := s.used[path]
	s.used[path]++
	if n == 0 {
		return path
	}
	return fmt.Sprintf("%s~%d", path, n)
}

// advance sends what the file has grown by, at most turn chunks.
func (s *streamer) advance(t *tail) (moved bool, err error) {
	if t.cut {
		s.discard(t)
		return false, nil
	}
	if fi, err := t.file.Stat(); err == nil && fi.Size() < t.offset {
		name := s.unique(t.path)
		s.log(fmt.Sprintf("outputs: %s was cut from %d to %d bytes: from its start as %s", t.name, t.offset, fi.Size(), name))
		t.name, t.offset = name, 0
	}
	for range turn {
		n, err := t.file.ReadAt(s.buf, t.offset)
		kept := s.take(t, n)
		if kept > 0 {
			if err := s.send(t.name, t.offset, s.buf[:kept]); err != nil {
				return false, err
			}
			t.offset += int64(kept)
			moved, t.sent = true, true
		}
		if kept < n {
			t.cut = true
			s.discard(t)
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

// take is how many of the next n bytes of a file are sent.
func (s *streamer) take(t *tail, n int) int {
	if !t.taken {
		return s.out.take(t.name, n)
	}
	if s.out.isRefused(t.name) {
		return 0
	}
	return n
}

// discard counts what a file that was cut has grown by.
func (s *streamer) discard(t *tail) {
	fi, err := t.file.Stat()
	if err != nil {
		return
	}
	if grown := fi.Size() - t.offset - t.discarded; grown > 0 {
		t.discarded += grown
		s.out.discard(t.name, grown)
	}
}

// Close lets go of all files.
func (s *streamer) Close() {
	for _, t := range s.order {
		t.file.Close() // was only read
	}
	s.order = nil
}

// deleted says whether nobody can open the file any more.
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
