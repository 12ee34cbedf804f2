package kubernetes

import (
	"maps"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// waitsAfter is how long after the first warning about its objects it is said what an
// op waits for: most warnings are of what is about to pass.
const waitsAfter = 3 * time.Second

// stillWaits is put into a feed when that time is over.
type stillWaits struct{}

// waits says what the objects of an op wait for, in the cluster's words, once that
// takes long, and again when it is something else. It is for one goroutine, which
// reads the op's feed.
type waits struct {
	sink     engine.Sink
	feed     *feed
	warnings warnings // the op's
	// pending lists the objects that are waited for at the moment.
	pending func() []awaited
	// told is what each object was said to wait for. timed: a first warning was seen.
	told        map[string]string
	timed, late bool
}

// awaited is an object that is waited for, by the loop's name, and the names of what
// there may be warnings about for its sake.
type awaited struct {
	object string
	about  []string
}

// saw follows each thing from the feed, when the op has taken it.
func (w *waits) saw(v any) {
	if _, over := v.(stillWaits); over {
		w.late = true
	}
	switch {
	case w.late:
		w.tell()
	case !w.timed && len(w.warnings) > 0:
		w.timed = true
		time.AfterFunc(waitsAfter, func() { w.feed.put(stillWaits{}) })
	}
}

// tell says of each object what it waits for now, unless that was said before.
func (w *waits) tell() {
	now := map[string]string{}
	for _, p := range w.pending() {
		if why := w.warnings.cause(p.about); why != "" {
			now[p.object] = why
		}
	}
	w.say(now)
}

// over says that nothing is waited for any more, where that was said.
func (w *waits) over() { w.say(nil) }

func (w *waits) say(now map[string]string) {
	all := slices.AppendSeq(slices.Collect(maps.Keys(w.told)), maps.Keys(now))
	slices.Sort(all)
	for _, object := range slices.Compact(all) {
		if w.told[object] != now[object] {
			w.sink.Log(engine.WaitsSource, engine.WaitLine(object, now[object]))
		}
	}
	w.told = now
}
