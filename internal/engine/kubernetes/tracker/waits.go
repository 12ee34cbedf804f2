package tracker

import (
	"maps"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// waitsAfter is how long after the first warning about its objects it is said what an
// op waits for: most warnings are of what is about to pass.
const WaitsAfter = 3 * time.Second

// stillWaits is put into a feed when that time is over.
type waitsDue struct{}

// waits says what the objects of an op wait for, in the cluster's words, once that
// takes long, and again when it is something else. It is for one goroutine, which
// reads the op's feed.
type Waits struct {
	sink     engine.Sink
	feed     *Feed
	warnings Warnings // the op's
	// pending lists the objects that are waited for at the moment.
	pending func() []Pending
	// told is what each object was said to wait for. timed: a first warning was seen.
	reported      map[string]string
	timerSet, due bool
}

// awaited is an object that is waited for, by the loop's name, and the names of what
// there may be warnings about for its sake.
type Pending struct {
	Object string
	Names  []string
}

// saw follows each thing from the feed, when the op has taken it.
func (w *Waits) Saw(v any) {
	if _, over := v.(waitsDue); over {
		w.due = true
	}
	switch {
	case w.due:
		w.report()
	case !w.timerSet && len(w.warnings) > 0:
		w.timerSet = true
		time.AfterFunc(WaitsAfter, func() { w.feed.Put(waitsDue{}) })
	}
}

// tell says of each object what it waits for now, unless that was said before.
func (w *Waits) report() {
	now := map[string]string{}
	for _, p := range w.pending() {
		if why := w.warnings.cause(p.Names); why != "" {
			now[p.Object] = why
		}
	}
	w.set(now)
}

// over says that nothing is waited for any more, where that was said.
func (w *Waits) Done() { w.set(nil) }

func (w *Waits) set(now map[string]string) {
	all := slices.AppendSeq(slices.Collect(maps.Keys(w.reported)), maps.Keys(now))
	slices.Sort(all)
	for _, object := range slices.Compact(all) {
		if w.reported[object] != now[object] {
			w.sink.Log(engine.WaitsSource, engine.WaitLine(object, now[object]))
		}
	}
	w.reported = now
}
