package engine

import "strings"

// WaitsSource is the source of the lines of Sink.Log that say what an op waits for,
// in the platform's words, and that it waits no longer: see WaitLine.
const WaitsSource = "waits"

const (
	waitsFor  = " waits: "
	waitsOver = " waits no longer"
)

// WaitLine says what an object waits for, or with an empty why that it no longer does.
func WaitLine(object, why string) string {
	if why == "" {
		return object + waitsOver
	}
	return object + waitsFor + strings.Join(strings.Fields(why), " ")
}

// ParseWait takes a line of WaitLine apart; an empty object: it is none.
func ParseWait(line string) (object, why string) {
	if object, over := strings.CutSuffix(line, waitsOver); over {
		return object, ""
	}
	if object, why, ok := strings.Cut(line, waitsFor); ok {
		return object, why
	}
	return "", ""
}
