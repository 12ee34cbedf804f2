package tracker

import (
	"maps"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// WaitsAfter is the time from the first warning until the wait is logged. Most warnings pass by themselves.
const WaitsAfter = 3 * time.Second

// waitsDue is put into a feed after WaitsAfter.
type waitsDue struct{}

// Waits logs what the objects of an op wait for, once that takes long, and each change of it. It is used by the
// goroutine that reads the op's feed.
type Waits struct {
	sink     engine.Sink
	feed     *Feed
	warnings Warnings // of the op
	// pending lists the objects that the op waits for.
	pending func() []Pending
	// reported is the last logged reason of each object.
	reported      map[string]string
	timerSet, due bool
}

// Pending is an object that an op waits for, and the names of the objects in the cluster whose warnings explain the
// wait.
type Pending struct {
	Object string
	Names  []string
}

// Saw is called after the op has handled an item of the feed.
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

// report logs the changed reasons.
func (w *Waits) report() {
	now := map[string]string{}
	for _, p := range w.pending() {
		if why := w.warnings.cause(p.Names); why != "" {
			now[p.Object] = why
		}
	}
	w.set(now)
}

// Done logs the end of all logged waits.
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
