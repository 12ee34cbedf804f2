package bundle

import (
	"errors"
	"fmt"
	"sync"
)

const (
	// chunkSize is the size at which a stream begins a new frame.
	chunkSize = 1 << 20
	// maxBuffered bounds the bytes that wait for a slow disk. Beyond it the run ends: blocking the loop or
	// losing records silently would falsify the results.
	maxBuffered = 256 << 20
	// keepFree is how many empty chunks are kept for reuse.
	keepFree = 4
)

// ErrBehind is returned when the bundle's disk is too slow.
var ErrBehind = errors.New("the disk of the bundle is too slow")

// chunk is data for a file. Chunks of framed files begin with frameHeader free bytes.
type chunk struct {
	file string // relative to the bundle; eventsDir for the events
	b    []byte
}

// queue takes records from any goroutine and passes them, in order per file, to the writing one. Its methods
// never wait for a disk.
type queue struct {
	wake  chan struct{} // a chunk is full: do not wait for the tick
	limit int           // maximum of buffered

	mu       sync.Mutex
	order    []*chunk          // in order of their first record
	current  map[string]*chunk // chunk to which a file's records are appended
	free     [][]byte
	buffered int
	peak     int
	refused  int64 // records added after the close
	err      error // set by close
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), limit: maxBuffered, current: make(map[string]*chunk)}
}

// add appends one record. Chunks of framed files begin with room for a header. It fails only after close.
func (q *queue) add(file string, framed bool, record []byte, end string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		q.refused++
		return q.err
	}
	if q.buffered+len(record) > q.limit {
		q.err = fmt.Errorf("%w: %d MiB are waiting to be written", ErrBehind, q.buffered>>20)
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
		case q.wake <- struct{}{}:
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

// take returns the waiting chunks; the caller returns each with release.
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

// close makes add fail with err. Only the first call has an effect.
func (q *queue) close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
	}
}
