package watch

import (
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	// recent is for how many seconds before and after it a probe is valid, unless enough probes are nearer to a stamp:
	// the largest of a hundred is exceeded by one in a hundred.
	recent = 10
	enough = 100
	// keepSeconds is the number of seconds whose largest bounds are kept.
	keepSeconds = 64
	// keepStamps is the number of stamps kept for Settled.
	keepStamps = 8192
	// Unprobed is the error, in nanoseconds, of stamps before the first write of the run was seen: far above the
	// lag of a healthy API server.
	Unprobed = int64(time.Second)
	// keepSeen is the number of versions of a kind kept for a late Wrote.
	keepSeen = 8192
	// maxPending bounds the writes whose event has not arrived.
	maxPending = 8192
)

// Lag is the source of a stamp's error.
type Lag string

// A watch's lag is Measured by the run's own writes of its kind, Borrowed from the slowest measured watch, or
// Unknown before the first write; then Err is Unprobed.
const (
	Measured Lag = "measured"
	Borrowed Lag = "borrowed"
	Unknown  Lag = "unknown"
)

// probe is one write of the run.
type probe struct {
	version        string
	sent, answered op.Time
}

// lag returns the lag of the event of this write, at time at. The API server sends answer and event at nearly the
// same time: an event after the answer was late by the difference. An event before the answer was late by at most
// the time since the request.
func (p probe) lag(at op.Time) int64 {
	if at >= p.answered {
		return int64(at - p.answered)
	}
	return p.bound(at)
}

// bound returns the upper limit of the lag: the change happened after the request was sent. Stamps have it as their
// error, since the lags of few probes may be small by chance.
func (p probe) bound(at op.Time) int64 { return int64(at - p.sent) }

// lags measures the lags of all watches. It is safe for concurrent use.
type lags struct {
	mu    sync.Mutex
	kinds map[string]*lagMeter
	wakes *hist.Histogram // time from arrival to reading

	stamped map[op.Time]stamp
	order   [keepStamps]op.Time
	next    int
}

// stamp is what was stamped at an instant.
type stamp struct{ kind, version string }

func newLags(sources []Source) *lags {
	l := &lags{kinds: map[string]*lagMeter{}, wakes: hist.New(), stamped: map[op.Time]stamp{}}
	for _, s := range sources {
		l.kinds[s.String()] = &lagMeter{inFlight: map[op.Time]int{}, pending: map[string]probe{},
			seen: map[string]op.Time{},
			lags: hist.New(), wroteAt: op.Never}
	}
	return l
}

// recordWake records how long a frame waited in the kernel.
func (l *lags) recordWake(after time.Duration) {
	if after <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.wakes.Record(int64(after)) // fails only for negative values
}

// idle says whether the run has written nothing of a kind since then.
func (l *lags) idle(kind string, since op.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.kinds[kind]
	return m != nil && m.wroteAt < since
}

// sending records a write that is about to be sent; answered, that it was answered or failed.
func (l *lags) sending(kind string, sent op.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.kinds[kind]; m != nil {
		m.inFlight[sent]++
	}
}

func (l *lags) answered(kind string, sent op.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.kinds[kind]
	if m == nil || m.inFlight[sent] == 0 {
		return
	}
	if m.inFlight[sent]--; m.inFlight[sent] == 0 {
		delete(m.inFlight, sent)
	}
}

// created records a creation of the run, which wrote records too.
func (l *lags) created(kind, version string, sent op.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.kinds[kind]; m != nil {
		m.creations.add(version, sent)
	}
}

func (l *lags) wrote(kind string, p probe) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.kinds[kind]; m != nil {
		m.wrote(p)
	}
}

// saw records an event.
func (l *lags) saw(kind, version string, at op.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kinds[kind].saw(version, at)
}

// bound returns the error of a stamp of a kind, for an object at this version: the largest bound of the last ten
// seconds, or of the last hundred probes, at least the last bound, and at least the age of the oldest write without an
// event. A kind without writes in that time also gets the bound of the slowest kind with some, since it may have become
// slow unnoticed. No error is larger than the time since a creation before the change. settledError returns it again
// later.
func (l *lags) bound(kind string, at op.Time, version string) (int64, Lag) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remember(at, stamp{kind, version})
	m := l.kinds[kind]
	most := m.most(at, version)
	err := max(m.latest, m.pendingAge(at, version))
	around, own := l.around(kind, at, recent)
	err = max(err, around)
	if own || m.n > 0 {
		return min(err, most), Measured
	}
	probed := false
	for _, o := range l.kinds {
		err = max(err, o.latest)
		probed = probed || o.n > 0
	}
	if probed {
		return min(err, most), Borrowed
	}
	return min(max(err, Unprobed), most), Unknown
}

// settledError returns the error of a stamp with later writes taken into account: they show that a watch has just
// become slow.
func (l *lags) settledError(at op.Time, err int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	of, known := l.stamped[at]
	if !known {
		return err
	}
	after, _ := l.around(of.kind, at, 0)
	return min(max(err, after), l.kinds[of.kind].most(at, of.version))
}

// around returns the largest bound of a kind near an instant, of at most back seconds before it; without probes, that
// of the slowest other kind.
func (l *lags) around(kind string, at op.Time, back int64) (err int64, own bool) {
	if err, own = l.kinds[kind].largest(at, back); own {
		return err, true
	}
	for _, o := range l.kinds {
		slow, _ := o.largest(at, back)
		err = max(err, slow)
	}
	return err, false
}

func (l *lags) remember(at op.Time, of stamp) {
	delete(l.stamped, l.order[l.next])
	l.order[l.next] = at
	l.next = (l.next + 1) % keepStamps
	l.stamped[at] = of
}

// lagMeter is the lag of one watch.
type lagMeter struct {
	inFlight map[op.Time]int    // unanswered writes, by the time sent
	pending  map[string]probe   // answered, without an event; by version
	seen     map[string]op.Time // by version
	order    [keepSeen]string   // ring of the keys of seen
	next     int
	seconds  [keepSeconds]second
	latest   int64 // the last bound

	creations creations

	n, early, unseen int64
	lags             *hist.Histogram
	wroteAt          op.Time // answer to the run's last write
}

// second has the largest bound of a second, and the number of its probes.
type second struct {
	number, bound int64
	n             int
}

func secondOf(at op.Time) int64 { return int64(max(at, 0)/op.Time(time.Second)) + 1 } // 0: none

// most returns the time since the last creation of the run that is known to be before the change of a version.
func (m *lagMeter) most(at op.Time, version string) int64 {
	since := m.creations.since(version)
	if !since.Known() || since > at {
		return math.MaxInt64
	}
	return int64(at - since)
}

func (m *lagMeter) wrote(p probe) {
	m.wroteAt = max(m.wroteAt, p.answered)
	if at, ok := m.seen[p.version]; ok {
		m.probe(p, at)
		return
	}
	if len(m.pending) >= maxPending { // the watch does not show the writes
		m.unseen += int64(len(m.pending))
		clear(m.pending)
	}
	m.pending[p.version] = p
}

func (m *lagMeter) saw(version string, at op.Time) {
	delete(m.seen, m.order[m.next])
	m.order[m.next] = version
	m.next = (m.next + 1) % keepSeen
	m.seen[version] = at

	if p, ok := m.pending[version]; ok {
		m.probe(p, at)
	}
	for v := range m.pending {
		// Versions are ordered: earlier ones will not come any more.
		if c, err := resourceversion.CompareResourceVersion(v, version); err != nil || c <= 0 {
			if c != 0 {
				m.unseen++
			}
			delete(m.pending, v)
		}
	}
}

// probe records one lag. An event from before the request is not of it: the request changed nothing and was
// answered with the current version.
func (m *lagMeter) probe(p probe, at op.Time) {
	if at < p.sent {
		return
	}
	if at < p.answered {
		m.early++
	}
	m.n++
	_ = m.lags.Record(p.lag(at)) // fails only for negative values
	m.latest = min(p.bound(at), m.most(at, p.version))
	number := secondOf(at)
	switch sec := &m.seconds[number%keepSeconds]; {
	case sec.number < number:
		*sec = second{number, m.latest, 1}
	case sec.number == number:
		sec.bound, sec.n = max(sec.bound, m.latest), sec.n+1
	}
}

// largest returns the largest bound of the seconds around an instant, of at most back before it; false without a probe.
func (m *lagMeter) largest(at op.Time, back int64) (bound int64, probed bool) {
	of, probes := secondOf(at), 0
	see := func(n int64) {
		if sec := m.seconds[max(n, 0)%keepSeconds]; n > 0 && sec.number == n {
			bound, probes = max(bound, sec.bound), probes+sec.n
		}
	}
	see(of)
	for d := int64(1); d <= recent && probes < enough; d++ {
		see(of + d)
		if d <= back {
			see(of - d)
		}
	}
	return bound, probes > 0
}

// pendingAge returns the age of the oldest write whose event may still come after this version. Its bound will be at
// least as large.
func (m *lagMeter) pendingAge(at op.Time, version string) int64 {
	var late int64
	for v, p := range m.pending {
		if c, err := resourceversion.CompareResourceVersion(v, version); err == nil && c > 0 {
			late = max(late, p.bound(at))
		}
	}
	for sent := range m.inFlight {
		late = max(late, int64(at-sent))
	}
	return late
}

// Summary summarizes a watch for the record. Times are in nanoseconds.
type Summary struct {
	Kind string `json:"kind"`
	// N counts the run's writes whose event was seen; P50, P99 and Max are their lags (percentiles to 0.1 %). Early
	// counts events before the answer: their lag is known only to be less than the time since the request.
	N     int64 `json:"n"`
	Early int64 `json:"early"`
	P50   int64 `json:"p50"`
	P99   int64 `json:"p99"`
	Max   int64 `json:"max"`
	// Unseen counts writes that the watch did not show: lost in a gap, or not selected.
	Unseen int64 `json:"unseen"`
	// Sum and Buckets are those of the lags.
	Sum     int64       `json:"-"`
	Buckets []op.Bucket `json:"-"`
	// Borrowed: the run wrote nothing of this kind, and the error is that of the slowest other kind.
	Borrowed bool `json:"borrowed"`
	// Depth and Deepest are the current and the largest number of frames that wait to be decoded.
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
		s.Max, s.Sum, s.Buckets = m.lags.Max(), m.lags.Sum(), coarseBuckets(m.lags)
	}
	return s
}

// coarseBuckets returns the counts of a histogram in steps 1, 2, 5 from 0.1 ms.
func coarseBuckets(h *hist.Histogram) []op.Bucket {
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
