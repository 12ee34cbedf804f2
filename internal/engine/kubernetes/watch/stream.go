package watch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	// maxList bounds the memory of a list: about 100 000 pods.
	maxList = 1 << 30
	// maxQuiet is how long the server may take to accept a watch or to list, which is its own request limit.
	maxQuiet = time.Minute
	// watchTimeout is the requested duration of a watch. The server's default is 30 to 60 minutes, and each end is a
	// gap.
	watchTimeout = 24 * time.Hour
	// stableAfter is how long a watch must have lasted for an immediate reconnect.
	stableAfter        = time.Second
	minDelay, maxDelay = 50 * time.Millisecond, 2 * time.Second
)

func (s *stream) begin(ctx context.Context) (*session, error) {
	var err error
	if s.conn, err = api.Dial(s.w.cfg.Host, true); err != nil {
		return nil, fmt.Errorf("watch %s: %w", s.src, err)
	}
	if err = s.list(ctx, op.Never); err != nil {
		return nil, err
	}
	return s.connect(ctx)
}

// run reads until ctx ends, over as many connections as needed.
func (s *stream) run(ctx context.Context, sn *session) {
	for sn != nil {
		err := s.read(sn)
		if broken := context.Cause(sn.ctx); broken != nil {
			err = broken // of the decoder, or of ctx
		}
		sn.cancel(nil)
		_ = sn.body.Close()
		if ctx.Err() != nil {
			return
		}
		sn = s.reopen(ctx, sn, s.settle(err))
	}
}

// read stamps and queues frames until the connection fails.
func (s *stream) read(sn *session) error {
	r := bufio.NewReaderSize(sn.body, 64<<10)
	for {
		frame, err := readFrame(s.src.Kind, r)
		if err != nil {
			return err
		}
		woke := sn.arrivals.Last() // waited for a CPU since
		at := max(s.w.cfg.Clock.Now()-op.Time(woke), s.lastAt)
		s.w.lags.recordWake(woke)
		s.w.queue.push(item{stream: s, at: at, frame: frame, session: sn, late: sn.resumed && sn.mark.Load() == nil})
		s.lastAt, s.last = at, frame
		s.events.Add(1)
		s.bytes.Add(int64(len(frame)))
	}
}

// settle finds the version to continue from in the last frame, and returns why the connection ended.
func (s *stream) settle(err error) error {
	if s.last != nil {
		_, obj, bad := decodeFrame(s.src.Kind, s.last)
		if bad != nil {
			err, s.stale = bad, true
		} else {
			s.version = obj.GetResourceVersion()
		}
		s.last = nil
	}
	if broken := (*brokenError)(nil); errors.As(err, &broken) {
		s.stale = true
	}
	return err
}

// brokenError is the decoder's error for a connection with invalid frames.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

// reopen retries until the watch is open, and records the gap; nil when ctx has ended.
func (s *stream) reopen(ctx context.Context, old *session, cause error) *session {
	gap := s.w.gaps.begin(s.src.String(), s.lastAt, s.w.cfg.Clock.Now(), cause)
	s.queueGap(gap)
	attempt := 0
	if s.w.cfg.Clock.Now()-old.opened < op.Time(stableAfter) {
		attempt = 1 // the server hung up at once: back off
	}
	for ; pause(ctx, attempt); attempt++ {
		sn, err := s.resume(ctx)
		if err != nil {
			s.w.gaps.failed(gap, err)
			continue
		}
		s.queueGap(s.w.gaps.end(gap, sn.opened))
		s.w.readers.Go(func() { s.findMark(sn) })
		return sn
	}
	return nil
}

func (s *stream) queueGap(g *Gap) {
	gap := *g
	s.w.queue.push(item{stream: s, gap: &gap})
}

func (s *stream) resume(ctx context.Context) (*session, error) {
	if s.stale {
		if err := s.list(ctx, s.lastAt); err != nil {
			return nil, err
		}
		s.stale = false
	}
	sn, err := s.connect(ctx)
	if err != nil {
		s.stale = s.stale || api.IsGone(err)
		return nil, err
	}
	sn.resumed, sn.from = true, s.lastAt
	return sn, nil
}

// pause waits before an attempt; false when ctx has ended.
func pause(ctx context.Context, attempt int) bool {
	var delay time.Duration
	if attempt > 0 {
		delay = min(minDelay<<min(attempt-1, 10), maxDelay)
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(delay):
		return ctx.Err() == nil
	}
}

// list lists all objects and queues the list. from is the last frame before a gap, or Never.
func (s *stream) list(ctx context.Context, from op.Time) error {
	query := api.Selectors(s.src.LabelSelector, s.src.FieldSelector)
	first := s.src.SinceOpen && !from.Known()
	if first {
		query.Set("limit", "1") // for the resourceVersion of now
	}
	body, err := s.get(ctx, query)
	if err != nil {
		return err
	}
	at := s.w.cfg.Clock.Now()
	meta, objects, err := s.src.DecodeList(body)
	if err != nil {
		return err
	}
	if first {
		objects, s.opened = nil, meta.ResourceVersion
	}
	if s.src.SinceOpen {
		objects = slices.DeleteFunc(objects, func(o api.Object) bool {
			c, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), s.opened)
			return err == nil && c <= 0
		})
	}
	for _, obj := range objects {
		obj.SetManagedFields(nil)
	}
	s.w.queue.push(item{stream: s, at: at, list: objects, from: from})
	s.version, s.lastAt = meta.ResourceVersion, at
	return nil
}

// get reads the whole collection.
func (s *stream) get(ctx context.Context, query url.Values) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, maxQuiet)
	defer cancel()
	resp, err := s.conn.Send(ctx, http.MethodGet, s.src.Path(s.src.Namespace, ""), query,
		http.Header{"Accept": {s.src.MediaType()}}, nil)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", s.src, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := api.ReadBounded(resp.Body, maxList)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = api.AsError(s.src.Kind, "list", "", resp.StatusCode, resp.Header, body)
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", s.src, err)
	}
	return body, nil
}

// connect opens the watch at s.version and returns when the server has accepted it.
func (s *stream) connect(ctx context.Context) (*session, error) {
	sn := new(session)
	sn.ctx, sn.cancel = context.WithCancelCause(ctx)
	quiet := time.AfterFunc(maxQuiet, func() { sn.cancel(fmt.Errorf("no answer in %v", maxQuiet)) })
	defer quiet.Stop()
	path, header := s.src.Path(s.src.Namespace, ""), http.Header{"Accept": {s.watchType()}}
	traced := sn.arrivals.Trace(sn.ctx)
	resp, err := s.conn.Send(traced, http.MethodGet, path, s.watchQuery(), header, nil) //nolint:bodyclose // run closes it
	if err == nil {
		err = s.accepted(resp)
	}
	if err != nil {
		sn.cancel(nil)
		return nil, fmt.Errorf("watch %s: %w", s.src, err)
	}
	sn.body, sn.opened = resp.Body, s.w.cfg.Clock.Now()
	return sn, nil
}

func (s *stream) watchQuery() url.Values {
	q := api.Selectors(s.src.LabelSelector, s.src.FieldSelector)
	q.Set("watch", "1")
	q.Set("allowWatchBookmarks", "true")
	q.Set("resourceVersion", s.version)
	q.Set("timeoutSeconds", fmt.Sprint(int(watchTimeout/time.Second)))
	return q
}

func (s *stream) watchType() string {
	if s.src.JSON {
		return api.JSON
	}
	return api.Protobuf + ";stream=watch"
}

// accepted checks the answer, and closes the body if it is not a watch.
func (s *stream) accepted(resp *http.Response) error {
	media := resp.Header.Get("Content-Type")
	if resp.StatusCode == http.StatusOK && strings.HasPrefix(media, s.src.MediaType()) {
		return nil
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusOK {
		return fmt.Errorf("the server answers in %q, want %q", media, s.watchType())
	}
	body, err := api.ReadBounded(resp.Body, maxFrame)
	if err != nil {
		return err
	}
	return api.AsError(s.src.Kind, "watch", "", resp.StatusCode, resp.Header, body)
}

// findMark reads the server's resourceVersion after a gap: changes up to it may have happened in the gap. Selectors
// do not matter.
func (s *stream) findMark(sn *session) {
	for attempt := 0; pause(sn.ctx, attempt); attempt++ {
		body, err := s.get(sn.ctx, url.Values{"limit": {"1"}})
		if err != nil {
			continue
		}
		if meta, _, err := s.src.DecodeList(body); err == nil {
			sn.mark.Store(&meta.ResourceVersion)
			return
		}
	}
}
