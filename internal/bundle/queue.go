package bundle

import (
	"errors"
	"fmt"
	"sync"
)

const (
	// chunkSize is the size at which a stream begins a new frame.
	chunkSize = 1 << 20
	// maxBuffered bounds what waits for a disk that does not keep up, in
	// bytes. Beyond it the run has to end: neither to block the loop nor to
	// lose records silently would be honest.
	maxBuffered = 256 << 20
	// keepFree is how many empty chunks are kept for reuse.
	keepFree = 4
)

// ErrBehind says that the disk under the bundle did not keep up.
var ErrBehind = errors.New("the disk under the bundle does not keep up")

// chunk is bytes on their way to a file. Chunks of framed files begin with
// frameHeader free bytes.
type chunk struct {
	file string // relative to the bundle; the events stream is eventsDir
	b    []byte
}

// queue takes records from any goroutine and hands them, in order for each
// file, to the one that writes. Its methods never wait for a disk.
type queue struct {
	kick  chan struct{} // a chunk is full: do not wait for the tick
	limit int           // bytes that may wait

	mu       sync.Mutex
	order    []*chunk          // in order of their first record
	current  map[string]*chunk // the one that a file's records are appended to
	free     [][]byte
	buffered int
	peak     int
	refused  int64 // records that came after the queue had closed
	err      error // closed
}

func newQueue() *queue {
	return &queue{kick: make(chan struct{}, 1), limit: maxBuffered, current: make(map[string]*chunk)}
}

// add appends one record. framed files get room for a header in each chunk.
// It fails only once the queue has been closed.
func (q *queue) add(file string, framed bool, record []byte, end string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		q.refused++
		return q.err
	}
	if q.buffered+len(record) > q.limit {
		q.err = fmt.Errorf("%w: %d MiB wait to be written", ErrBehind, q.buffered>>20)
		q.refused++
		return q.err
	}
	c := q.current[file]
	if c == nil {
		c = &chunk{file: file, b: q.buffer(framed)}
		q.current[file] = c
		q.order = append(q.order, c)
	}
	c.b = append(append(c.b, record...), end...)
	q.buffered += len(record) + len(end)
	q.peak = max(q.peak, q.buffered)
	if len(c.b) >= chunkSize {
		delete(q.current, file)
		select {
		case q.kick <- struct{}{}:
		default:
		}
	}
	return nil
}

func (q *queue) buffer(framed bool) []byte {
	var b []byte
	if n := len(q.free); n > 0 {
		b, q.free = q.free[n-1][:0], q.free[:n-1]
	}
	if framed {
		b = append(b, make([]byte, frameHeader)...)
	}
	return b
}

// take returns what waits; the caller gives each chunk back by release.
func (q *queue) take() []*chunk {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.order
	q.order = nil
	clear(q.current)
	return taken
}

// release counts a chunk as written and keeps its memory for reuse.
func (q *queue) release(c *chunk, records int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.buffered -= records
	if len(q.free) < keepFree && cap(c.b) <= 2*chunkSize {
		q.free = append(q.free, c.b)
	}
}

// close refuses records from now on, with err as the reason. The first call
// counts.
func (q *queue) close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
	}
}
