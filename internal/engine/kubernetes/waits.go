package kubernetes

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// waitsAfter is how long after the first warning about its objects it is said what an
// op waits for: most warnings are of what is about to pass.
const waitsAfter = 3 * time.Second

// stillWaits is put into a feed when that time is over.
type stillWaits struct{}

// warned notes that the cluster has warned of an object of the op.
func (b *bringing) warned() {
	switch {
	case b.late:
		b.tellWaits()
	case !b.timed:
		b.timed = true
		time.AfterFunc(waitsAfter, func() { b.feed.put(stillWaits{}) })
	}
}

// tellWaits says what each object that is not of use yet waits for, by the last
// warning of it, unless that was said before.
func (b *bringing) tellWaits() {
	b.late = true
	for _, name := range slices.Sorted(maps.Keys(b.pods)) {
		if p := b.pods[name]; !p.done {
			b.tellWait(p.object, b.warnings.last(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.claims)) {
		if c := b.claims[name]; !c.bound {
			b.tellWait(c.object, b.warnings.last(name))
		}
	}
}

func (b *bringing) tellWait(object, why string) {
	if why != "" && b.told[object] != why {
		b.told[object] = why
		b.engine.session.Sink.Log(engine.WaitsSource, engine.WaitLine(object, why))
	}
}

// waitsOver says that nothing is waited for any more, where that was said.
func (b *bringing) waitsOver() {
	for _, object := range slices.Sorted(maps.Keys(b.told)) {
		b.engine.session.Sink.Log(engine.WaitsSource, engine.WaitLine(object, ""))
	}
	clear(b.told)
}

// last is the latest warning of an object, by the cluster's own time.
func (w warnings) last(object string) string {
	var latest warning
	for _, k := range slices.Sorted(maps.Keys(w)) {
		if x := w[k]; strings.HasPrefix(k, object+" ") && !x.at.Before(&latest.at) {
			latest = x
		}
	}
	if latest.reason == "" {
		return ""
	}
	return latest.reason + ": " + strings.TrimSpace(latest.message)
}
