package engine

import "strings"

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
