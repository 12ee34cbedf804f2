// Package canary does a small I/O beside a workload, on its volume, at a
// fixed schedule that does not wait for earlier I/Os (open loop): what the
// storage makes one innocent request wait is seen at full length and weight,
// also while the workload itself is stuck in it (coordinated omission).
//
// It writes to a file of its own that is never visible: O_TMPFILE, or
// unlinked right after it was made. The file is written once in full before
// the first I/O, so that later writes are overwrites of allocated blocks: no
// allocation, no change of size, next to no metadata.
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

// blocks is how many places the I/Os are spread over, at random.
const blocks = 64

// workers bounds the I/Os that are under way at once on one volume. Each
// claims the next I/O of the schedule, sleeps until it is due and does it:
// there is no hand-over that could cost time, and while no more than this many
// hang, the schedule is kept. When all hang, the I/Os that fall due are issued
// as soon as one is free; their responses count from their intended times all
// the same.
const workers = 16

// backlog bounds the I/Os that are kept until an older one has ended; beyond
// it they are counted as dropped.
const backlog = 1 << 16

// Canary is one volume's. Run drives it, Take collects what is done.
type Canary struct {
	Name string

	file     *os.File
	alarms   [workers]*clock.Alarm
	block    bool // a device: never written
	clock    clock.Clock
	interval int64
	size     int
	kinds    []bool // of the I/Os of one interval: write?

	mu      sync.Mutex
	start   int64
	stop    int64      // nothing is intended after it
	claimed int64      // I/Os of the schedule that have been claimed
	queue   []*pending // claimed and not taken, in order
	dropped int64
}

type pending struct {
	io   protocol.CanaryIO
	done bool
}

// Open makes the canary's file on v and writes it once. Its log lines say
// what it does otherwise than asked: a device and a read-only volume are only
// read, a filesystem without O_DIRECT is used through its cache. An error
// means that there is no canary on this volume.
func Open(v protocol.CanaryVolume, s protocol.CanarySpec, clock clock.Clock, log func(string)) (*Canary, error) {
	if s.Size <= 0 || s.Size%4096 != 0 || s.Size > 1<<20 {
		return nil, fmt.Errorf("canary on %s: size %d is not a multiple of 4096 up to 1 MiB", v.Name, s.Size)
	}
	if s.IntervalNanos < int64(100*time.Microsecond) {
		return nil, fmt.Errorf("canary on %s: interval %v is below 100µs", v.Name, time.Duration(s.IntervalNanos))
	}
	c := &Canary{Name: v.Name, clock: clock, interval: s.IntervalNanos, size: s.Size, stop: math.MaxInt64}
	st, err := os.Stat(v.Path)
	if err != nil {
		return nil, fmt.Errorf("canary on %s: %w", v.Name, err)
	}
	c.block = !st.IsDir()
	if s.Write && c.block {
		log(fmt.Sprintf("canary on %s: a raw device is only read: a write would be visible", v.Name))
	}
	if s.Write && !c.block {
		c.kinds = append(c.kinds, true)
	}
	if s.Read {
		c.kinds = append(c.kinds, false)
	}
	if len(c.kinds) == 0 {
		return nil, fmt.Errorf("canary on %s: nothing to do", v.Name)
	}
	if err := c.open(v, log); err != nil {
		c.close()
		return nil, fmt.Errorf("canary on %s: %w", v.Name, err)
	}
	return c, nil
}

// open makes the alarms, and opens the device or makes the file.
func (c *Canary) open(v protocol.CanaryVolume, log func(string)) error {
	var err error
	for i := range c.alarms {
		if c.alarms[i], err = clock.NewAlarm(c.clock); err != nil {
			return err
		}
	}
	if c.block {
		c.file, err = os.OpenFile(v.Path, os.O_RDONLY|unix.O_DIRECT, 0)
		return err
	}
	c.file, err = hidden(v.Path, unix.O_DIRECT)
	if errors.Is(err, unix.EINVAL) {
		log(fmt.Sprintf("canary on %s: the filesystem has no O_DIRECT: its I/O goes through the page cache", v.Name))
		c.file, err = hidden(v.Path, 0)
	}
	if err != nil {
		return err
	}
	return c.fill()
}

// hidden makes a file in dir that has no name.
func hidden(dir string, flags int) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE|os.O_EXCL|flags, 0o600)
	if err == nil || errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSPC) {
		return f, err
	}
	// No O_TMPFILE (EOPNOTSUPP, EISDIR), or no O_DIRECT (EINVAL): the second
	// attempt tells which.
	name := fmt.Sprintf("%s/.cnsbench-canary-%d-%x", dir, os.Getpid(), rand.Uint64())
	f, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|flags, 0o600)
	// A refused O_DIRECT may leave the file behind: it is removed in any case.
	if rmErr := os.Remove(name); rmErr != nil && err == nil {
		return nil, errors.Join(rmErr, f.Close())
	}
	return f, err
}

// fill writes every block once, with bytes that neither compress nor repeat,
// and has them on the device.
func (c *Canary) fill() error {
	buf := noise(c.size)
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

// noise is size random bytes in memory aligned as O_DIRECT wants it.
func noise(size int) []byte {
	raw := make([]byte, size+4096)
	skip := 4096 - int(uintptr(unsafe.Pointer(&raw[0]))%4096)
	buf := raw[skip : skip+size]
	for i := range buf {
		buf[i] = byte(rand.Uint32())
	}
	return buf
}

// EndAt has it intend no I/O after an instant; call it before Run, which is to
// end then.
func (c *Canary) EndAt(t int64) { c.stop = t }

// Run does the I/Os: one of each kind at each multiple of the interval after
// now, until ctx ends. I/Os that hang then are waited for no longer than a
// second. It closes the file, which is gone with that.
func (c *Canary) Run(ctx context.Context) {
	c.mu.Lock()
	c.start = c.clock.Now()
	c.mu.Unlock()
	var wg sync.WaitGroup
	for _, alarm := range c.alarms {
		wg.Go(func() { c.work(ctx, alarm) })
	}
	<-ctx.Done()
	for _, alarm := range c.alarms {
		alarm.Stop()
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

// close lets go of everything.
func (c *Canary) close() {
	for _, alarm := range c.alarms {
		if alarm != nil {
			alarm.Close() // a timer
		}
	}
	if c.file != nil {
		c.file.Close() // nothing of it is to be kept
	}
}

// work does I/Os, one at a time, until ctx ends.
func (c *Canary) work(ctx context.Context, alarm *clock.Alarm) {
	buf := noise(c.size)
	for {
		p := c.claim()
		if alarm.Wait(p.io.Intended) != nil || ctx.Err() != nil {
			return
		}
		io := p.io // p is also seen by Take
		c.do(&io, buf)
		c.mu.Lock()
		p.io, p.done = io, true
		c.mu.Unlock()
	}
}

// claim takes the next I/O of the schedule.
func (c *Canary) claim() *pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) >= backlog && c.scheduled(c.claimed).Intended < c.clock.Now() {
		c.claimed++
		c.dropped++
	}
	p := &pending{io: c.scheduled(c.claimed)}
	c.claimed++
	c.queue = append(c.queue, p)
	return p
}

// scheduled is the n-th I/O of the schedule.
func (c *Canary) scheduled(n int64) protocol.CanaryIO {
	kinds := int64(len(c.kinds))
	return protocol.CanaryIO{
		Intended: c.start + (n/kinds+1)*c.interval,
		Started:  protocol.Never, Ended: protocol.Never, Write: c.kinds[n%kinds],
	}
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
	if err == nil || errors.Is(err, io.EOF) { // a device shorter than our span
		return
	}
	errno := unix.EIO
	_ = errors.As(err, &errno)
	op.Errno = int(errno)
}

// Take removes and returns the I/Os that are done and before which all are
// done, in order of their intended time, and how many were dropped since the
// start. With final, which is for after Run, the I/Os that were intended
// before its end and have not ended or were never issued are returned too,
// those times being wire.Never.
func (c *Canary) Take(final bool) (ios []protocol.CanaryIO, dropped int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for ; n < len(c.queue) && (c.queue[n].done || final); n++ {
		if io := c.queue[n].io; io.Intended <= c.stop {
			ios = append(ios, io)
		}
	}
	c.queue = append([]*pending(nil), c.queue[n:]...)
	for final && c.scheduled(c.claimed).Intended <= c.stop {
		ios = append(ios, c.scheduled(c.claimed))
		c.claimed++
	}
	return ios, c.dropped
}
