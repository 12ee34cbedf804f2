package engine

import (
	"strings"
	"sync"
	"time"
)

// WaitsSource is the source of the Sink.Log lines that say what an op waits for, in the platform's words, and
// when it stops waiting; see WaitLine.
const WaitsSource = "waits"

const (
	waitsFor  = " waits: "
	waitsOver = " waits no longer"
)

// WaitLine says what an object waits for, or with an empty why that it stopped waiting.
func WaitLine(object, why string) string {
	if why == "" {
		return object + waitsOver
	}
	return object + waitsFor + strings.Join(strings.Fields(why), " ")
}

// Removal is what an object waits for that is being removed.
const Removal = "for its removal"

// SlowRemoval is how long the removal of an object takes before it is logged.
const SlowRemoval = time.Second

// ObjectRemoval is how much longer a removal may take for each object: clusters delete some 20 volumes in a second.
const ObjectRemoval = 100 * time.Millisecond

// NoteRemoval logs a wait for the removal of an object that takes longer than a second, and its end. It must be called
// before the removal, and done after it. A nil sink is allowed.
func NoteRemoval(sink Sink, object string) (done func()) {
	if sink == nil {
		return func() {}
	}
	var mu sync.Mutex
	noted, over := false, false
	timer := time.AfterFunc(SlowRemoval, func() {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			sink.Log(WaitsSource, WaitLine(object, Removal))
			noted = true
		}
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		if over = true; noted {
			sink.Log(WaitsSource, WaitLine(object, ""))
		}
	}
}

// ParseWait parses a line of WaitLine; an empty object: it is another line.
func ParseWait(line string) (object, why string) {
	if object, over := strings.CutSuffix(line, waitsOver); over {
		return object, ""
	}
	if object, why, ok := strings.Cut(line, waitsFor); ok {
		return object, why
	}
	return "", ""
}
