// Package canary performs a small I/O beside a workload, on its volume, on a fixed schedule that does not
// wait for earlier I/Os (open loop), so that stalls are measured at full length and weight while the workload
// itself is blocked (coordinated omission).
//
// It writes to an unnamed file (O_TMPFILE, or unlinked after creation). The file is written once in full
// before the first I/O, so that later writes overwrite allocated blocks: no allocation, no change of size,
// almost no metadata.
package canary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/clock"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// blocks is the number of positions over which the I/Os are spread at random.
const blocks = 64

// maxPending bounds the I/Os of a stream kept until an older one has ended; further ones are counted as dropped.
const maxPending = 1 << 16

// Canary is the canary of one volume. Run drives it, Take collects its results.
type Canary struct {
	Name string

	file  *os.File
	block bool // a device, never written
	clock clock.Clock
	size  int

	mu      sync.Mutex
	stop    int64     // no I/O is intended after it
	streams []*stream // of those due at one instant, the first stream's is first
	dropped int64
}

// Open creates the canary's file on v and writes it once. It logs deviations from s: a device or read-only
// volume is only read, and a file system without O_DIRECT is used through its cache. On error the volume has
// no canary.
func Open(v protocol.CanaryVolume, s protocol.CanarySpec, clock clock.Clock, log func(string)) (*Canary, error) {
	if s.Size <= 0 || s.Size%4096 != 0 || s.Size > 1<<20 {
		return nil, fmt.Errorf("canary on %s: size %d is not a multiple of 4096 up to 1 MiB", v.Name, s.Size)
	}
	if s.IntervalNanos < int64(100*time.Microsecond) {
		return nil, fmt.Errorf("canary on %s: interval %v is below 100µs", v.Name, time.Duration(s.IntervalNanos))
	}
	c := &Canary{Name: v.Name, clock: clock, size: s.Size, stop: math.MaxInt64}
	st, err := os.Stat(v.Path)
	if err != nil {
		return nil, fmt.Errorf("canary on %s: %w", v.Name, err)
	}
	c.block = !st.IsDir()
	if s.Write && c.block {
		log(fmt.Sprintf("canary on %s: a raw device is only read: a write would be visible", v.Name))
	}
	if s.Write && !c.block {
		c.streams = append(c.streams, newStream(true, s.IntervalNanos))
	}
	if s.Read {
		c.streams = append(c.streams, newStream(false, s.IntervalNanos))
	}
	if len(c.streams) == 0 {
		return nil, fmt.Errorf("canary on %s: neither read nor write requested", v.Name)
	}
	if err := c.open(v, log); err != nil {
		c.close()
		return nil, fmt.Errorf("canary on %s: %w", v.Name, err)
	}
	return c, nil
}

// open creates the timers, and opens the device or creates the file.
func (c *Canary) open(v protocol.CanaryVolume, log func(string)) error {
	var err error
	for _, s := range c.streams {
		for i := range s.timers {
			if s.timers[i], err = clock.NewTimer(c.clock); err != nil {
				return err
			}
		}
	}
	if c.block {
		c.file, err = os.OpenFile(v.Path, os.O_RDONLY|unix.O_DIRECT, 0)
		return err
	}
	c.file, err = createUnnamed(v.Path, unix.O_DIRECT)
	if errors.Is(err, unix.EINVAL) {
		log(fmt.Sprintf("canary on %s: the file system does not support O_DIRECT: using the page cache", v.Name))
		c.file, err = createUnnamed(v.Path, 0)
	}
	if err != nil {
		return err
	}
	return c.writeAll()
}

// createUnnamed creates a file without a name in dir.
func createUnnamed(dir string, flags int) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE|os.O_EXCL|flags, 0o600)
	if err == nil || errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSPC) {
		return f, err
	}
	// Either O_TMPFILE (EOPNOTSUPP, EISDIR) or O_DIRECT (EINVAL) is unsupported:
	// the second attempt distinguishes them.
	name := fmt.Sprintf("%s/.cnsbench-canary-%d-%x", dir, os.Getpid(), rand.Uint64())
	f, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|flags, 0o600)
	// A rejected O_DIRECT may leave the file behind.
	if rmErr := os.Remove(name); rmErr != nil && err == nil {
		return nil, errors.Join(rmErr, f.Close())
	}
	return f, err
}

// writeAll writes every block once, with incompressible bytes, and syncs.
func (c *Canary) writeAll() error {
	buf := randomBlock(c.size)
	for i := range blocks {
		buf[0] = byte(i)
		if _, err := c.file.WriteAt(buf, int64(i*c.size)); err != nil {
			return fmt.Errorf("first write: %w", err)
		}
	}
	if err := c.file.Sync(); err != nil {
		return fmt.Errorf("first sync: %w", err)
	}
	return nil
}

// randomBlock returns size random bytes, aligned for O_DIRECT.
func randomBlock(size int) []byte {
	raw := make([]byte, size+4096)
	skip := 4096 - int(uintptr(unsafe.Pointer(&raw[0]))%4096)
	buf := raw[skip : skip+size]
	for i := range buf {
		buf[i] = byte(rand.Uint32())
	}
	return buf
}

// EndAt sets the instant after which no I/O is intended. It must be called before Run, which must end then.
func (c *Canary) EndAt(t int64) { c.stop = t }

// Run performs one I/O of each kind at each multiple of the interval from now until ctx ends, or less often (see
// stream.adapt). It then waits at most a second for hanging I/Os and closes the file.
func (c *Canary) Run(ctx context.Context) {
	c.mu.Lock()
	start := c.clock.Now()
	for _, s := range c.streams {
		s.next = start + s.interval
	}
	c.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range c.streams {
		for _, timer := range s.timers {
			wg.Go(func() { c.work(ctx, s, timer) })
		}
	}
	<-ctx.Done()
	for _, s := range c.streams {
		for _, timer := range s.timers {
			timer.Stop()
		}
	}
	c.mu.Lock()
	c.stop = min(c.stop, c.clock.Now())
	c.mu.Unlock()
	finished := make(chan struct{})
	go func() {
		wg.Wait()
		c.close()
		close(finished)
	}()
	select {
	case <-finished:
	case <-time.After(time.Second):
	}
}

func (c *Canary) close() {
	for _, s := range c.streams {
		for _, timer := range s.timers {
			if timer != nil {
				timer.Close()
			}
		}
	}
	if c.file != nil {
		c.file.Close()
	}
}

// work performs I/Os of a stream, one at a time, until ctx ends.
func (c *Canary) work(ctx context.Context, s *stream, timer *clock.Timer) {
	buf := randomBlock(c.size)
	for {
		p := c.take(s)
		if timer.Wait(p.io.Intended) != nil || ctx.Err() != nil {
			return
		}
		io := p.io // Take reads p concurrently
		c.do(&io, buf)
		c.mu.Lock()
		p.io, p.done = io, true
		s.adapt(&io)
		c.mu.Unlock()
	}
}

// take takes the next I/O of the schedule of a stream.
func (c *Canary) take(s *stream) *pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(s.queue) >= maxPending && s.next < c.clock.Now() {
		s.next += s.every
		c.dropped++
	}
	p := &pending{io: s.due()}
	s.next += s.every
	s.queue = append(s.queue, p)
	return p
}

// do performs one I/O at a random block.
func (c *Canary) do(op *protocol.CanaryIO, buf []byte) {
	offset := int64(rand.IntN(blocks) * c.size)
	var err error
	op.Started = c.clock.Now()
	if op.Write {
		_, err = c.file.WriteAt(buf, offset)
	} else {
		_, err = c.file.ReadAt(buf, offset)
	}
	op.Ended = c.clock.Now()
	if err == nil || errors.Is(err, io.EOF) { // the device is shorter than the canary's span
		return
	}
	errno := unix.EIO
	_ = errors.As(err, &errno)
	op.Errno = int(errno)
}

// maxOpen bounds the result of Open. The I/Os of a longer stall are those of the workers and of the schedule.
const maxOpen = 256

// Open returns the I/Os that are due and that Take has not returned, in order of their intended time: at most the
// oldest 256. Call it after Take, so that each I/O is in one of the results.
func (c *Canary) Open(now int64) (ios []protocol.CanaryIO) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := c.cursors(); len(ios) < maxOpen; {
		h := earliest(at)
		io, _ := h.head()
		if io.Intended > min(now, c.stop) {
			break
		}
		ios = append(ios, io)
		h.advance()
	}
	return ios
}

// Take removes and returns the leading I/Os that are done, in order of their intended time, and the number
// dropped since the start. After Run, final also returns the I/Os that did not end or start, with times
// protocol.Never.
func (c *Canary) Take(final bool) (ios []protocol.CanaryIO, dropped int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.cursors()
	for {
		h := earliest(at)
		io, done := h.head()
		if !done && !final || io.Intended > c.stop {
			break
		}
		ios = append(ios, io)
		h.advance()
	}
	for i, s := range c.streams {
		s.queue, s.next = append([]*pending(nil), s.queue[at[i].n:]...), at[i].next
	}
	return ios, c.dropped
}

func (c *Canary) cursors() (list []*cursor) {
	for _, s := range c.streams {
		list = append(list, &cursor{of: s, next: s.next})
	}
	return list
}
