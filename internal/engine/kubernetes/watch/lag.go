package watch

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	// recent is how far a probe tells of stamps before and after it.
	recent = op.Time(10 * time.Second)
	// keepSeconds is how many seconds' largest bounds are remembered.
	keepSeconds = 64
	// keepStamps is how many stamps are remembered with their kinds, for those
	// who ask again (Settled).
	keepStamps = 8192
	// Unprobed is the error, in nanoseconds, of stamps before any write of ours was
	// seen by any watch: far above what a healthy API server needs.
	Unprobed = int64(time.Second)
	// keepSeen is how many versions of a kind are remembered for a Wrote that is
	// told after its event has come.
	keepSeen = 8192
	// maxPending bounds the writes whose event has not come.
	maxPending = 8192
)

// Lag says where the error of a stamp is from.
type Lag string

// A watch's lag is Measured by our own writes of its kind; Borrowed from the
// slowest of those that are measured; Unknown before there was any, and then Err is
// Unprobed.
const (
	Measured Lag = "measured"
	Borrowed Lag = "borrowed"
	Unknown  Lag = "unknown"
)

// probe is one write of ours.
type probe struct {
	version        string
	sent, answered op.Time
}

// lag is how late the watch showed this write, whose event came at at, as far as
// can be seen: the API server sends answer and event at nearly the same time, so
// that an event that came after the answer was that much later. One that came
// before it was later than the change by no more than the time since the request.
func (p probe) lag(at op.Time) int64 {
	if at >= p.answered {
		return int64(at - p.answered)
	}
	return p.bound(at)
}

// bound is what the lag cannot have exceeded: the change was made after the
// request was sent. It is the error of stamps, since one small lag among few
// probes would promise too much.
func (p probe) bound(at op.Time) int64 { return int64(at - p.sent) }

// lags measures all watches. It is safe for concurrent use.
type lags struct {
	mu    sync.Mutex
	kinds map[string]*meter
	wakes *hist.Histogram // from the arrival of what was read to its reading

	stamped map[op.Time]string // kinds of the latest stamps
	order   [keepStamps]op.Time
	next    int
}

func newLags(sources []Source) *lags {
	l := &lags{kinds: map[string]*meter{}, wakes: hist.New(), stamped: map[op.Time]string{}}
	for _, s := range sources {
		l.kinds[s.String()] = &meter{flying: map[op.Time]int{}, pending: map[string]probe{}, seen: map[string]op.Time{}, lags: hist.New(), wroteAt: op.Never}
	}
	return l
}

// woke takes how long a frame had lain in the kernel when it was read.
func (l *lags) woke(after time.Duration) {
	if after <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.wakes.Record(int64(after)) // fails for negative values only
}

// idle says whether we have written nothing of a watched kind since.
func (l *lags) idle(kind string, since op.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.kinds[kind]
	return m != nil && m.wroteAt < since
}

// sending takes a write that is about to be sent; landed says that it was answered,
// or failed.
func (l *lags) sending(kind string, sent op.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.kinds[kind]; m != nil {
		m.flying[sent]++
	}
}

func (l *lags) landed(kind string, sent op.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.kinds[kind]
	if m == nil || m.flying[sent] == 0 {
		return
	}
	if m.flying[sent]--; m.flying[sent] == 0 {
		delete(m.flying, sent)
	}
}

func (l *lags) wrote(kind string, p probe) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.kinds[kind]; m != nil {
		m.wrote(p)
	}
}

// saw takes an event that came by a watch as it should.
func (l *lags) saw(kind, version string, at op.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kinds[kind].saw(version, at)
}

// bound is the error of a stamp of this kind, of an object at this version: the
// largest bound of the ten seconds around it, at least the last one seen, and the
// time for which the oldest write of ours is on its way that has not come by this
// watch. A kind that we did not write in that time may have become slow unseen: it
// also has that of the slowest of those that we did. settled is asked again later.
func (l *lags) bound(kind string, at op.Time, version string) (int64, Lag) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remember(kind, at)
	m := l.kinds[kind]
	err := max(m.latest, m.behind(at, version))
	around, own := l.around(kind, at-recent, at+recent)
	err = max(err, around)
	if own || m.n > 0 {
		return err, Measured
	}
	probed := false
	for _, o := range l.kinds {
		err = max(err, o.latest)
		probed = probed || o.n > 0
	}
	if probed {
		return err, Borrowed
	}
	return max(err, Unprobed), Unknown
}

// settled is the error of a stamp by what came after it too: a watch that has just
// become slow shows that by the writes of ours that come next.
func (l *lags) settled(at op.Time, err int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind, known := l.stamped[at]
	if !known {
		return err
	}
	after, _ := l.around(kind, at, at+recent)
	return max(err, after)
}

// around is the largest bound of a kind's probes between two instants; of a kind
// that had none, the slowest other's.
func (l *lags) around(kind string, from, to op.Time) (err int64, own bool) {
	if err, own = l.kinds[kind].largest(from, to); own {
		return err, true
	}
	for _, o := range l.kinds {
		slow, _ := o.largest(from, to)
		err = max(err, slow)
	}
	return err, false
}

func (l *lags) remember(kind string, at op.Time) {
	delete(l.stamped, l.order[l.next])
	l.order[l.next] = at
	l.next = (l.next + 1) % keepStamps
	l.stamped[at] = kind
}

// meter is the lag of one watch.
type meter struct {
	flying  map[op.Time]int    // writes by when they were sent: not answered
	pending map[string]probe   // by version: answered, event not seen
	seen    map[string]op.Time // stamps of the latest versions
	order   [keepSeen]string   // ring of the keys of seen
	next    int
	seconds [keepSeconds]second
	latest  int64 // the last bound

	n, early, unseen int64
	lags             *hist.Histogram
	wroteAt          op.Time // answer to the last write of ours
}

// second has the largest bound of the probes that came in it.
type second struct{ number, bound int64 }

func secondOf(at op.Time) int64 { return int64(max(at, 0)/op.Time(time.Second)) + 1 } // 0: none

func (m *meter) wrote(p probe) {
	m.wroteAt = max(m.wroteAt, p.answered)
	if at, ok := m.seen[p.version]; ok {
		m.probe(p, at)
		return
	}
	if len(m.pending) >= maxPending { // the watch does not show what we write
		m.unseen += int64(len(m.pending))
		clear(m.pending)
	}
	m.pending[p.version] = p
}

func (m *meter) saw(version string, at op.Time) {
	delete(m.seen, m.order[m.next])
	m.order[m.next] = version
	m.next = (m.next + 1) % keepSeen
	m.seen[version] = at

	if p, ok := m.pending[version]; ok {
		m.probe(p, at)
	}
	for v := range m.pending {
		// Versions come in order: what is not after this one will not come.
		if c, err := resourceversion.CompareResourceVersion(v, version); err != nil || c <= 0 {
			if c != 0 {
				m.unseen++
			}
			delete(m.pending, v)
		}
	}
}

// probe takes one lag. An event from before the request is not of it: the
// request changed nothing, and was answered with the version that was there.
func (m *meter) probe(p probe, at op.Time) {
	if at < p.sent {
		return
	}
	if at < p.answered {
		m.early++
	}
	m.n++
	_ = m.lags.Record(p.lag(at)) // fails for negative values only
	m.latest = p.bound(at)
	number := secondOf(at)
	switch sec := &m.seconds[number%keepSeconds]; {
	case sec.number < number:
		*sec = second{number, m.latest}
	case sec.number == number:
		sec.bound = max(sec.bound, m.latest)
	}
}

// largest is the largest bound of the seconds of two instants and between, as far
// as they are remembered; false if there was no probe.
func (m *meter) largest(from, to op.Time) (bound int64, probed bool) {
	for n := secondOf(from); n <= secondOf(to); n++ {
		if sec := m.seconds[n%keepSeconds]; sec.number == n {
			bound, probed = max(bound, sec.bound), true
		}
	}
	return bound, probed
}

// behind is for how long a write of ours has been on its way that comes after the
// given version in this watch, or may: its bound will be no less.
func (m *meter) behind(at op.Time, version string) int64 {
	var late int64
	for v, p := range m.pending {
		if c, err := resourceversion.CompareResourceVersion(v, version); err == nil && c > 0 {
			late = max(late, p.bound(at))
		}
	}
	for sent := range m.flying {
		late = max(late, int64(at-sent))
	}
	return late
}

// Summary is what one watch did, for the record. Times are in nanoseconds.
type Summary struct {
	Kind string `json:"kind"`
	// N counts the writes of ours whose event was seen; P50, P99 and Max are their
	// lags (percentiles to 0.1 %). Early counts the events that came before the
	// answer: their lag is only known to be less than the time since the request.
	N     int64 `json:"n"`
	Early int64 `json:"early"`
	P50   int64 `json:"p50"`
	P99   int64 `json:"p99"`
	Max   int64 `json:"max"`
	// Unseen counts writes of ours that the watch did not show: lost in a gap, or
	// not among what it watches.
	Unseen int64 `json:"unseen"`
	// Sum and Buckets are of the lags, for the record.
	Sum     int64       `json:"-"`
	Buckets []op.Bucket `json:"-"`
	// Borrowed says that we wrote nothing of this kind: its error is that of
	// the slowest other.
	Borrowed bool `json:"borrowed"`
	// Depth and Deepest are how many frames wait, and have waited, to be decoded.
	Depth   int   `json:"depth"`
	Deepest int   `json:"deepest"`
	Events  int64 `json:"events"`
	Bytes   int64 `json:"bytes"`
	Gaps    int   `json:"gaps"`
}

func (l *lags) summary(kind string) Summary {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.kinds[kind]
	s := Summary{N: m.n, Early: m.early, Unseen: m.unseen, Borrowed: m.n == 0}
	if m.n > 0 {
		s.P50, _ = m.lags.Quantile(0.5)
		s.P99, _ = m.lags.Quantile(0.99)
		s.Max, s.Sum, s.Buckets = m.lags.Max(), m.lags.Sum(), coarse(m.lags)
	}
	return s
}

// coarse has the counts of a histogram in the steps 1, 2, 5, from 0.1 ms to
// above the largest.
func coarse(h *hist.Histogram) []op.Bucket {
	var list []op.Bucket
	for step := int64(100e3); len(list) == 0 || list[len(list)-1].UpToNs < h.Max(); step *= 10 {
		list = append(list, op.Bucket{UpToNs: step}, op.Bucket{UpToNs: 2 * step}, op.Bucket{UpToNs: 5 * step})
	}
	i := 0
	h.Buckets(func(b hist.Bucket) bool {
		for b.High > list[i].UpToNs && i < len(list)-1 {
			i++
		}
		list[i].N += b.Count
		return true
	})
	return list
}
