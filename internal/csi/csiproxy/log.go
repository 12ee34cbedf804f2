package csiproxy

import (
	"cmp"
	"slices"
	"sync"
)

// Limits of a Log.
const (
	maxEvents = 200_000 // two for each of 100,000 calls
	maxBytes  = 64 << 20
)

// Log keeps the latest events, in order, for any number of readers at their own pace. A reader that falls
// behind learns how many it missed. Methods are safe for concurrent use and do not block.
type Log struct {
	mu       sync.Mutex
	capacity int
	events   []event
	first    int64 // position of events[0]
	bytes    int
	seq      int64
	open     map[*Record]struct{}
	unseen   int64
	wake     chan struct{}
}

// event is the begin or the end of a call; both share the record.
type event struct {
	record *Record
	ended  bool
	size   int
}

func newLog(capacity int) *Log {
	return &Log{capacity: capacity, open: map[*Record]struct{}{}, wake: make(chan struct{})}
}

// begin takes ownership of a new record and numbers it.
func (l *Log) begin(r *Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	r.Seq = l.seq
	l.open[r] = struct{}{}
	l.append(event{record: r, size: r.size()})
}

// end completes a record; answer has the fields of the response.
func (l *Log) end(r *Record, answer Subject, at int64, code, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.open[r]; !ok {
		return
	}
	delete(l.open, r)
	r.Subject.fill(answer)
	r.End, r.Code, r.Message = at, code, clip(message)
	l.append(event{record: r, ended: true, size: len(r.Message)})
}

// countUnseen counts n calls that could not be parsed.
func (l *Log) countUnseen(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unseen += n
	l.notify()
}

func (l *Log) append(e event) {
	l.events = append(l.events, e)
	l.bytes += e.size
	for len(l.events) > l.capacity || l.bytes > maxBytes {
		l.bytes -= l.events[0].size
		l.events[0] = event{}
		l.events = l.events[1:]
		l.first++
	}
	l.notify()
}

func (l *Log) notify() {
	close(l.wake)
	l.wake = make(chan struct{})
}

// snapshot returns the position after the last event and the calls in flight, in order.
func (l *Log) snapshot() (int64, []Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var open []Record
	for r := range l.open {
		open = append(open, *r)
	}
	slices.SortFunc(open, func(a, b Record) int { return cmp.Compare(a.Seq, b.Seq) })
	return l.first + int64(len(l.events)), open
}

// page is the result of one read.
type page struct {
	records []Record
	next    int64           // position of the next read
	lost    int64           // discarded events before records
	unseen  int64           // total of calls that could not be parsed
	wake    <-chan struct{} // closed when there are more events
}

// read returns at most limit events from a position on.
func (l *Log) read(from int64, limit int) page {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := page{unseen: l.unseen, wake: l.wake, lost: max(0, l.first-from)}
	from += p.lost
	for _, e := range l.events[min(from-l.first, int64(len(l.events))):] {
		if len(p.records) == limit {
			break
		}
		r := *e.record
		if !e.ended {
			r.End, r.Code, r.Message = 0, "", ""
		}
		p.records = append(p.records, r)
	}
	p.next = from + int64(len(p.records))
	return p
}

// fill sets the empty fields of s from o.
func (s *Subject) fill(o Subject) {
	for _, f := range []struct{ to, from *string }{
		{&s.Driver, &o.Driver}, {&s.Node, &o.Node}, {&s.Name, &o.Name}, {&s.Volume, &o.Volume},
		{&s.Snapshot, &o.Snapshot}, {&s.Group, &o.Group}, {&s.Source, &o.Source}, {&s.Path, &o.Path},
	} {
		if *f.to == "" {
			*f.to = *f.from
		}
	}
}
