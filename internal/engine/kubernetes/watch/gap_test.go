package watch

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cnsbench/cnsbench/internal/op"
)

// podServer counts what is asked for: lists, marks and watches have scripts of their own, called with how often
// they were asked before.
type podServer struct {
	list  func(n int, w http.ResponseWriter)
	mark  string // the resourceVersion at a mark request
	watch func(n int, w http.ResponseWriter, r *http.Request)

	lists, marks, watches atomic.Int32
	from                  [16]string // resourceVersion of each watch
}

func (p *podServer) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case isMark(r):
		p.marks.Add(1)
		listing(w, p.mark)
	case isWatch(r):
		n := int(p.watches.Add(1)) - 1
		p.from[n] = r.URL.Query().Get("resourceVersion")
		p.watch(n, w, r)
	default:
		p.list(int(p.lists.Add(1))-1, w)
	}
}

func (p *podServer) open(t *testing.T) (*Watches, *recorder) {
	rec := &recorder{}
	w := open(t, Config{Host: served{"pods": p.serve}.start(t), Clock: op.NewClock(), Sources: pods,
		Handler: rec.handle, Gap: rec.gap})
	return w, rec
}

func listed(version string, items ...runtime.Object) func(int, http.ResponseWriter) {
	return func(_ int, w http.ResponseWriter) { listing(w, version, items...) }
}

const u = Unprobed // nothing is written in these tests

func TestAWatchThatEndsGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &podServer{list: listed("10"), mark: "31"}
		p.watch = func(n int, w http.ResponseWriter, r *http.Request) {
			o := watching(w, r)
			if n == 0 {
				time.Sleep(2 * time.Second)
				o.send("ADDED", pod("a", "11"))
				time.Sleep(2 * time.Second)
				o.send("BOOKMARK", pod("", "20"))
				time.Sleep(2 * time.Second)
				return // its time is over
			}
			time.Sleep(time.Second) // the mark is known by now
			o.send("MODIFIED", pod("a", "30"))
			o.send("MODIFIED", pod("a", "31"))
			time.Sleep(time.Second)
			o.send("MODIFIED", pod("a", "32"))
			<-r.Context().Done()
		}
		w, rec := p.open(t)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if p.from[1] != "20" || p.lists.Load() != 1 || p.watches.Load() != 2 {
			t.Errorf("%d lists, %d watches, the second from %q; want 1, 2, from the bookmark 20", p.lists.Load(),
				p.watches.Load(), p.from[1])
		}
		want := []seen{
			{Added, "a", "11", 2 * sec, u, false, 0, 0},
			{Bookmark, "", "20", 4 * sec, u, false, 0, 0},
			// Up to the mark they may have happened at any time since 4 s.
			{Modified, "a", "30", 5500 * ms, u + int64(1500*ms), true, 4 * sec, 7 * sec},
			{Modified, "a", "31", 5500 * ms, u + int64(1500*ms), true, 4 * sec, 7 * sec},
			{Modified, "a", "32", 8 * sec, u, false, 0, 0},
		}
		if d := cmp.Diff(want, rec.take()); d != "" {
			t.Error(d)
		}
		gap := Gap{Kind: "pods", From: 4 * sec, Lost: 6 * sec, To: 6 * sec, Cause: "EOF", Attempts: 1}
		if d := cmp.Diff([]Gap{gap}, w.Gaps()); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]Gap{{Kind: "pods", From: 4 * sec, Lost: 6 * sec, To: op.Never, Cause: "EOF"}, gap}, rec.gaps); d != "" {
			t.Error("told: ", d)
		}
		if got := w.Lags()[0].Gaps; got != 1 {
			t.Errorf("the summary has %d gaps", got)
		}
	})
}

// What comes before the mark is known is taken to be of the gap.
func TestWithoutAMarkAllIsOfTheGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &podServer{list: listed("10")}
		p.watch = func(n int, w http.ResponseWriter, r *http.Request) {
			o := watching(w, r)
			if n == 0 {
				time.Sleep(2 * time.Second)
				return
			}
			time.Sleep(time.Second)
			o.send("ADDED", pod("a", "11"))
			<-r.Context().Done()
		}
		rec := &recorder{}
		host := served{"pods": func(w http.ResponseWriter, r *http.Request) {
			if isMark(r) {
				refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "not now")
				return
			}
			p.serve(w, r)
		}}.start(t)
		open(t, Config{Host: host, Clock: op.NewClock(), Sources: pods, Handler: rec.handle})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		want := []seen{{Added, "a", "11", 1500 * ms, u + int64(1500*ms), true, 0, 3 * sec}}
		if d := cmp.Diff(want, rec.take()); d != "" {
			t.Error(d)
		}
	})
}

// The server has forgotten where we were: as an HTTP status or as an ERROR frame.
func TestGoneIsListedAgainAndTheDifferencesAreIntervals(t *testing.T) {
	gone := failure(http.StatusGone, metav1.StatusReasonExpired, "too old resource version: 10 (99)")
	for _, c := range []struct {
		name  string
		watch func(n int, w http.ResponseWriter, r *http.Request)
		cause string
		tries int32
	}{
		{"error frame", func(n int, w http.ResponseWriter, r *http.Request) {
			o := watching(w, r)
			time.Sleep(4 * time.Second)
			if n == 0 {
				o.send("ERROR", gone)
				return
			}
			<-r.Context().Done()
		}, "watch of pods: the server ended it: too old resource version: 10 (99)", 2},
		{"status", func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				refuse(w, http.StatusGone, metav1.StatusReasonGone, "gone")
				return
			}
			watching(w, r)
			if n == 0 {
				time.Sleep(4 * time.Second)
				return
			}
			<-r.Context().Done()
		}, "EOF", 3},
		{"garbage", func(n int, w http.ResponseWriter, r *http.Request) {
			o := watching(w, r)
			time.Sleep(4 * time.Second)
			if n == 0 {
				o.raw([]byte{0, 0, 0, 4}, []byte("junk"))
			}
			<-r.Context().Done() // the decoder must cut it off
		}, "watch of pods: malformed frame: ", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reborn := pod("reborn", "98")
				reborn.UID = "another"
				p := &podServer{mark: "99", watch: c.watch}
				p.list = func(n int, w http.ResponseWriter) {
					if n == 0 {
						listing(w, "10", pod("same", "1"), pod("changed", "2"), pod("vanished", "3"),
							pod("reborn", "4"))
						return
					}
					listing(w, "99", pod("same", "1"), pod("changed", "50"), pod("new", "60"), reborn)
				}
				w, rec := p.open(t)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				gaps := w.Gaps()
				if len(gaps) != 1 || !strings.HasPrefix(gaps[0].Cause, c.cause) || !gaps[0].To.Known() {
					t.Fatalf("gaps %+v, want one caused by %q", gaps, c.cause)
				}
				if p.watches.Load() != c.tries || p.from[c.tries-1] != "99" {
					t.Errorf("%d watches, the last from %q; want %d, from the list's 99", p.watches.Load(),
						p.from[c.tries-1], c.tries)
				}
				got := rec.take()
				if len(got) < 4 {
					t.Fatalf("only %v", got)
				}
				from, to := op.Time(0), got[len(got)-1].To
				if frame := c.name != "status"; frame {
					from = 4 * sec // the last frame, readable or not
				}
				mid, half := to-(to-from)/2, int64(to-from-(to-from)/2)
				want := []seen{
					{Deleted, "reborn", "4", mid, u + half, true, from, to},
					{Deleted, "vanished", "3", mid, u + half, true, from, to},
					{Listed, "changed", "50", mid, u + half, true, from, to},
					{Listed, "new", "60", mid, u + half, true, from, to},
					{Listed, "reborn", "98", mid, u + half, true, from, to},
				}
				if d := cmp.Diff(want, got[4:]); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

func TestAServerThatIsDownIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		p := &podServer{list: listed("10"), mark: "10"}
		p.watch = func(n int, w http.ResponseWriter, r *http.Request) {
			switch {
			case down.Load():
				panic(http.ErrAbortHandler) // the connection breaks without an answer
			case n == 0:
				watching(w, r)
				time.Sleep(5 * time.Second)
				down.Store(true)
				panic(http.ErrAbortHandler)
			}
			watching(w, r)
			<-r.Context().Done()
		}
		w, rec := p.open(t)
		time.Sleep(8 * time.Second)
		gaps := w.Gaps()
		if len(gaps) != 1 || gaps[0].To.Known() || gaps[0].Attempts < 5 || gaps[0].Last == "" {
			t.Errorf("while the server is down: %+v, want one open gap with its failed attempts", gaps)
		}
		down.Store(false)
		time.Sleep(2*time.Second + 1)
		synctest.Wait()
		gaps = w.Gaps()
		if len(gaps) != 1 || !gaps[0].To.Known() || gaps[0].From != 0 || gaps[0].To < 8*sec || gaps[0].To > 10*sec {
			t.Errorf("after the server is up: %+v, want one gap to within 2 s after it came back", gaps)
		}
		if len(rec.gaps) != 2 {
			t.Errorf("told of %d changes, want the beginning and the end", len(rec.gaps))
		}
	})
}

// A server that accepts and hangs up must not be asked in a tight loop.
func TestHangingUpAtOnceIsNotAskedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &podServer{list: listed("10"), mark: "10"}
		n := atomic.Int32{}
		host := served{"pods": func(w http.ResponseWriter, r *http.Request) {
			if isWatch(r) {
				n.Add(1)
				watching(w, r)
				return
			}
			p.serve(w, r)
		}}.start(t)
		open(t, Config{Host: host, Clock: op.NewClock(), Sources: pods, Handler: func(Event) {}})
		time.Sleep(time.Second + time.Millisecond)
		if got := n.Load(); got < 2 || got > 21 {
			t.Errorf("%d watches in a second, want at most 1 per 50 ms", got)
		}
	})
}

func TestCloseEndsAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &podServer{list: listed("10"), mark: "10"}
		p.watch = func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 0 {
				watching(w, r)
				time.Sleep(2 * time.Second)
				return
			}
			refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "starting")
		}
		w, _ := p.open(t)
		time.Sleep(3 * time.Second)
		w.Close()
		if gaps := w.Gaps(); len(gaps) != 1 || gaps[0].To.Known() {
			t.Errorf("gaps %+v, want one that is open", gaps)
		}
	})
}

// TestOutages: gaps of several kinds in which reopening failed are one outage where they overlap; the server's normal end
// of a watch is none.
func TestOutages(t *testing.T) {
	gaps := []Gap{
		{Kind: "pods", From: 1 * sec, Lost: 10 * sec, To: 41 * sec, Last: "refused"},
		{Kind: "events", From: 9 * sec, Lost: 9 * sec, To: 40 * sec, Last: "refused"},
		{Kind: "claims", From: 2 * sec, Lost: 50 * sec, To: 51 * sec},
		{Kind: "claims", From: 51 * sec, Lost: 60 * sec, To: op.Never, Last: "refused"},
	}
	want := []Outage{{9 * sec, 41 * sec}, {60 * sec, 62 * sec}}
	if d := cmp.Diff(want, Outages(gaps, 62*sec)); d != "" {
		t.Error(d)
	}
}
