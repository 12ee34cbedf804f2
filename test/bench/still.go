package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// span is a part of the time.
type span struct{ from, to time.Time }

// stillness watches for moments at which a CPU of this machine stood still. On
// each a thread above all others wakes every millisecond: what keeps it from that
// is no program here, but the machine's host, or an interrupt.
type stillness struct {
	cpus         int
	processors   int // of Go, before
	began, ended time.Time
	stop         context.CancelFunc
	watches      sync.WaitGroup

	mu    sync.Mutex
	spans []span // of all CPUs
}

const (
	stillPeriod = time.Millisecond
	stillLeast  = 500 * time.Microsecond
)

// watchStillness begins; with an error, which says that the threads may not be put
// above others, nothing is watched.
func watchStillness(ctx context.Context) (*stillness, error) {
	var all unix.CPUSet
	ctx, stop := context.WithCancel(ctx)
	s := &stillness{began: time.Now(), stop: stop, processors: runtime.GOMAXPROCS(0)}
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return s, err
	}
	ready := make(chan error)
	runtime.GOMAXPROCS(s.processors + all.Count()) // each thread keeps one
	for cpu := 0; s.cpus < all.Count(); cpu++ {
		if all.IsSet(cpu) {
			s.cpus++
			s.watches.Go(func() { s.watch(ctx, cpu, ready) })
		}
	}
	var failed error
	for range s.cpus {
		if err := <-ready; err != nil {
			failed = err
		}
	}
	if failed != nil {
		s.end()
		return s, failed
	}
	return s, nil
}

func (s *stillness) watch(ctx context.Context, cpu int, ready chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread ends with this
	var own unix.CPUSet
	own.Set(cpu)
	err := unix.SchedSetaffinity(0, &own)
	if err == nil {
		err = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 99},
			0)
	}
	ready <- err
	pause := unix.NsecToTimespec(int64(stillPeriod))
	for err == nil && ctx.Err() == nil {
		due := time.Now().Add(stillPeriod)
		// Raw: telling the scheduler of Go each time would cost more than all else. A
		// signal only makes it shorter.
		_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
		if now := time.Now(); now.Sub(due) >= stillLeast {
			s.mu.Lock()
			s.spans = append(s.spans, span{due, now})
			s.mu.Unlock()
		}
	}
}

// end stops watching.
func (s *stillness) end() {
	s.stop()
	s.watches.Wait()
	runtime.GOMAXPROCS(s.processors)
	slices.SortFunc(s.spans, func(a, b span) int { return a.from.Compare(b.from) })
	s.ended = time.Now()
}

// within is how much of a span some CPU stood still. Only after end.
func (s *stillness) within(o span) (d time.Duration) {
	at := o.from
	for _, x := range s.spans {
		from, to := x.from, x.to
		if from.Before(at) {
			from = at
		}
		if to.After(o.to) {
			to = o.to
		}
		if to.After(from) {
			d += to.Sub(from)
			at = to
		}
	}
	return d
}

// share is how much of the time that was watched some CPU stood still.
func (s *stillness) share() float64 {
	return s.within(span{s.began, s.ended}).Seconds() / s.ended.Sub(s.began).Seconds()
}

func (s *stillness) String() string {
	longest := time.Duration(0)
	for _, x := range s.spans {
		longest = max(longest, x.to.Sub(x.from))
	}
	return fmt.Sprintf("%.2f %% of the time, at most %v", 100*s.share(), longest.Round(10*time.Microsecond))
}

// stillest measures n times and gives the k results in whose time the CPUs stood
// still least, and how much that was. Nothing but the machine decides which they
// are. Where that cannot be watched the first k are given.
func stillest[T any](ctx context.Context, n, k int, measure func(i int) (T, error)) (chosen []T, still string,
	err error) {
	type run struct {
		result T
		share  float64
	}
	var runs []run
	var unwatched error
	for i := range n {
		var machine *stillness
		machine, unwatched = watchStillness(ctx)
		result, err := measure(i)
		machine.end()
		if err != nil {
			return nil, "", err
		}
		runs = append(runs, run{result, machine.share()})
		if unwatched != nil && len(runs) == k {
			break
		}
	}
	slices.SortStableFunc(runs, func(a, b run) int { return cmp.Compare(a.share, b.share) })
	for _, r := range runs[:k] {
		chosen = append(chosen, r.result)
	}
	if unwatched != nil {
		return chosen, fmt.Sprintf("not known, without the right to real-time priorities: %v", unwatched), nil
	}
	return chosen, fmt.Sprintf("%.2f to %.2f %% of the time; of all %d runs at most %.2f %%", 100*runs[0].share,
		100*runs[k-1].share, n, 100*runs[n-1].share), nil
}

// stillness adds what was watched, or why it was not.
func (t *table) stillness(name string, s *stillness, unwatched error) {
	if what := name + ": a CPU of this machine stood still, for everybody"; unwatched == nil {
		t.info(len(s.spans), what, "%s", s)
	} else {
		t.info(0, what, "not known, without the right to real-time priorities: %v", unwatched)
	}
}
