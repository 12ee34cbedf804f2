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

// span is an interval of time.
type span struct{ from, to time.Time }

// stillness measures when a CPU of this host ran no program. On each CPU a thread with the highest
// priority wakes every millisecond. If it wakes late, the cause is not a program on this host but
// the hypervisor or an interrupt.
type stillness struct {
	cpus         int
	processors   int // GOMAXPROCS before the measurement
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

// watchStillness starts the measurement. If the threads may not get real-time priority, it returns
// an error and measures nothing.
func watchStillness(ctx context.Context) (*stillness, error) {
	var all unix.CPUSet
	ctx, stop := context.WithCancel(ctx)
	s := &stillness{began: time.Now(), stop: stop, processors: runtime.GOMAXPROCS(0)}
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return s, err
	}
	ready := make(chan error)
	runtime.GOMAXPROCS(s.processors + all.Count()) // each watching thread occupies one
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
	runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
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
		// A raw system call, because the overhead of Go's scheduler would exceed everything else. A
		// signal only shortens the pause.
		_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
		if now := time.Now(); now.Sub(due) >= stillLeast {
			s.mu.Lock()
			s.spans = append(s.spans, span{due, now})
			s.mu.Unlock()
		}
	}
}

// end stops the measurement.
func (s *stillness) end() {
	s.stop()
	s.watches.Wait()
	runtime.GOMAXPROCS(s.processors)
	slices.SortFunc(s.spans, func(a, b span) int { return a.from.Compare(b.from) })
	s.ended = time.Now()
}

// within returns how long any CPU was stopped within a span. It may only be called after end.
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

// share returns the share of the measured time in which any CPU was stopped.
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

// stillest measures n times and returns the k results during which the CPUs were stopped least,
// with the share of this time. The selection depends only on the host and not on the results. If
// the time cannot be measured, it returns the first k results.
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

// stillness adds the measured time, or the reason why it was not measured.
func (t *table) stillness(name string, s *stillness, unwatched error) {
	if what := name + ": a CPU of this machine stood still, for everybody"; unwatched == nil {
		t.info(len(s.spans), what, "%s", s)
	} else {
		t.info(0, what, "not known, without the right to real-time priorities: %v", unwatched)
	}
}
