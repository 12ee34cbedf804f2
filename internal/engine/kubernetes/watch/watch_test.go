package watch

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	ms  = op.Time(time.Millisecond)
	sec = op.Time(time.Second)
)

func open(t *testing.T, cfg Config) *Watches {
	t.Helper()
	w, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func TestStampsAreOfTheLastByteWhateverTheHandlerDoes(t *testing.T) {
	for _, c := range []struct {
		name   string
		source Source
		object func(name, version string) runtime.Object
	}{
		{"protobuf", Source{Kind: api.Pods, Namespace: "n"}, func(n, v string) runtime.Object { return pod(n, v) }},
		{"json", Source{Kind: api.VolumeSnapshots, Namespace: "n"},
			func(n, v string) runtime.Object { return snapshot(n, v) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := served{c.source.Resource: func(w http.ResponseWriter, r *http.Request) {
					if !isWatch(r) {
						listing(w, "10", c.object("old", "7"))
						return
					}
					if got := r.URL.Query().Get("resourceVersion"); got != "10" {
						t.Errorf("watch from resourceVersion %q, want the list's", got)
					}
					o := watching(w, r)
					time.Sleep(100 * time.Millisecond)
					o.send("ADDED", c.object("a", "11"))
					half := frameOf(o.json, "MODIFIED", c.object("a", "12"))
					time.Sleep(10 * time.Millisecond)
					o.raw(half[:3])
					time.Sleep(10 * time.Millisecond)
					o.raw(half[3:20])
					time.Sleep(30 * time.Millisecond)
					o.raw(half[20:], frameOf(o.json, "DELETED", c.object("a", "13")))
					time.Sleep(time.Millisecond)
					o.send("BOOKMARK", c.object("", "20"))
					<-r.Context().Done()
				}}.start(t)
				rec := &recorder{}
				w := open(t, Config{Host: host, Clock: op.NewClock(), Sources: []Source{c.source},
					Handler: func(e Event) {
						time.Sleep(time.Second)
						rec.handle(e)
					}})
				time.Sleep(10 * time.Second)
				want := []seen{
					{Listed, "old", "7", 0, Unprobed, false, 0, 0},
					{Added, "a", "11", 100 * ms, Unprobed, false, 0, 0},
					{Modified, "a", "12", 150 * ms, Unprobed, false, 0, 0},
					{Deleted, "a", "13", 150 * ms, Unprobed, false, 0, 0},
					{Bookmark, "", "20", 151 * ms, Unprobed, false, 0, 0},
				}
				if d := cmp.Diff(want, rec.take()); d != "" {
					t.Error(d)
				}
				got := w.Lags()[0]
				if got.Deepest != 4 || got.Depth != 0 || got.Events != 4 || got.Bytes == 0 {
					t.Errorf("4 events behind a slow handler are summarised as %+v", got)
				}
			})
		})
	}
}

func TestOpenReturnsWhenTheLastWatchIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := served{
			"pods": quietPods("1"),
			"volumesnapshots": func(w http.ResponseWriter, r *http.Request) {
				if !isWatch(r) {
					listingSnapshots(w, "5")
					return
				}
				time.Sleep(3 * time.Second)
				watching(w, r)
				<-r.Context().Done()
			}}.start(t)
		clock := op.NewClock()
		open(t, Config{Host: host, Clock: clock, Sources: []Source{{Kind: api.Pods}, {Kind: api.VolumeSnapshots}},
			Handler: func(Event) {}})
		if at := clock.Now(); at != 3*sec {
			t.Errorf("Open returned at %v, want when the slowest watch was accepted, 3s", time.Duration(at))
		}
	})
}

// quietPods has no pods and no events.
func quietPods(version string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !isWatch(r) {
			listing(w, version)
			return
		}
		watching(w, r)
		<-r.Context().Done()
	}
}

func TestOpenNamesEveryKindThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which also finds goroutines that stay
		host := served{
			"pods": quietPods("1"),
			"nodes": func(w http.ResponseWriter, _ *http.Request) {
				refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden,
					`nodes is forbidden: User "u" cannot list`)
			},
		}.start(t)
		_, err := Open(t.Context(), Config{Host: host, Clock: op.NewClock(), Handler: func(Event) {},
			Sources: []Source{{Kind: api.Pods}, {Kind: api.Nodes}, {Kind: api.VolumeSnapshots}}})
		for _, want := range []string{"list nodes: nodes is forbidden",
			"list volumesnapshots.snapshot.storage.k8s.io: the server could not find"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v does not say %q", err, want)
			}
		}
	})
}

func TestTheContextOfOpenEndsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := served{"pods": quietPods("1")}.start(t)
		ctx, cancel := context.WithCancel(t.Context())
		w, err := Open(ctx, Config{Host: host, Clock: op.NewClock(), Sources: pods, Handler: func(Event) {}})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		select {
		case <-w.done:
		default:
			t.Error("the decoding goroutine lives on")
		}
		w.Close()
	})
}

// An own write is a probe whichever is first, its event or Wrote, and the event's error is the largest recent lag.
func TestWritesMeasureTheLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan struct{ typ, version string })
		host := served{"pods": func(w http.ResponseWriter, r *http.Request) {
			if !isWatch(r) {
				listing(w, "10")
				return
			}
			o := watching(w, r)
			for e := range events {
				o.send(e.typ, pod("a", e.version))
			}
		}}.start(t)
		rec := &recorder{}
		w := open(t, Config{Host: host, Clock: op.NewClock(), Sources: pods, Handler: rec.handle})
		wrote := func(version string, sent, answered op.Time) {
			w.Wrote(api.Call{Verb: "patch", Kind: api.Pods, Namespace: "n", Name: "a", Status: 200,
				ResourceVersion: version, Sent: sent, Answered: answered})
		}
		wrote("11", 0, 0) // answered 7 ms before its event
		time.Sleep(7 * time.Millisecond)
		events <- struct{ typ, version string }{"ADDED", "11"}
		time.Sleep(time.Millisecond) // 8 ms
		events <- struct{ typ, version string }{"MODIFIED", "12"}
		time.Sleep(2 * time.Millisecond) // 10 ms
		wrote("12", 5*ms, 9*ms)          // its event was there 1 ms before the answer, 3 ms after the request
		events <- struct{ typ, version string }{"MODIFIED", "13"}
		time.Sleep(11 * time.Second)
		events <- struct{ typ, version string }{"DELETED", "14"}
		close(events)
		synctest.Wait()
		want := []seen{
			{Added, "a", "11", 7 * ms, int64(7 * ms), false, 0, 0},
			{Modified, "a", "12", 8 * ms, int64(7 * ms), false, 0, 0},
			{Modified, "a", "13", 10 * ms, int64(7 * ms), false, 0, 0},
			{Deleted, "a", "14", 11*sec + 10*ms, int64(3 * ms), false, 0, 0}, // the last one seen
		}
		if d := cmp.Diff(want, rec.take()); d != "" {
			t.Error(d)
		}
		got := w.Lags()[0]
		if got.N != 2 || got.Early != 1 || got.Unseen != 0 || got.Max != int64(7*ms) || got.Borrowed {
			t.Errorf("summary %+v", got)
		}
	})
}
