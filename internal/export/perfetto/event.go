package perfetto

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"

	"github.com/cnsbench/cnsbench/internal/op"
)

// The phases of trace events that are written. Slices are pairs of begin and end: their
// instants are single numbers, so that rounding by a reader cannot break the nesting, as
// it can with a begin and a duration.
const (
	phBegin    = "B"
	phEnd      = "E"
	phInstant  = "i"
	phCounter  = "C"
	phMetadata = "M"
)

// event is one trace event of the Trace Event Format.
type event struct {
	Ph        string
	Pid, Tid  int // Tid 0: none
	At        op.Time
	Cat, Name string
	Scope     string // of an instant: "t" thread, "g" global
	Args      any    // nil: none
}

// append appends the event as JSON. Millions are written, and reflection takes most of the
// time: only the arguments are left to it.
func (e *event) append(b []byte) ([]byte, error) {
	b = append(append(b, `{"ph":"`...), e.Ph...)
	b = strconv.AppendInt(append(b, `","pid":`...), int64(e.Pid), 10)
	if e.Tid != 0 {
		b = strconv.AppendInt(append(b, `,"tid":`...), int64(e.Tid), 10)
	}
	b = appendMicros(append(b, `,"ts":`...), e.At)
	for _, field := range []struct{ key, value string }{{"cat", e.Cat}, {"name", e.Name}, {"s", e.Scope}} {
		if field.value != "" {
			b = appendText(append(append(append(b, `,"`...), field.key...), `":`...), field.value)
		}
	}
	if e.Args != nil {
		args, err := json.Marshal(e.Args)
		if err != nil {
			return b, err
		}
		b = append(append(b, `,"args":`...), args...)
	}
	return append(b, '}'), nil
}

// appendMicros appends an instant in µs with three decimals.
func appendMicros(b []byte, t op.Time) []byte {
	if t < 0 {
		b, t = append(b, '-'), -t
	}
	b = strconv.AppendInt(b, int64(t/1000), 10)
	ns := int(t % 1000)
	return append(b, '.', byte('0'+ns/100), byte('0'+ns/10%10), byte('0'+ns%10))
}

// appendText appends a JSON string.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a text can always be encoded
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// writer writes a trace as a stream. The first error stays.
type writer struct {
	to     *bufio.Writer
	buf    []byte
	zero   op.Time // is written as 0
	events int64
	err    error
}

// newWriter starts a trace. Readers expect displayTimeUnit before the events.
func newWriter(to io.Writer, zero op.Time, about any) *writer {
	w := &writer{to: bufio.NewWriterSize(to, 256<<10), zero: zero}
	head, err := json.Marshal(about)
	w.err = err
	w.text(`{"displayTimeUnit":"ns","otherData":` + string(head) + `,"traceEvents":[`)
	return w
}

func (w *writer) text(s string) {
	if w.err == nil {
		_, w.err = w.to.WriteString(s)
	}
}

// write adds an event whose At is an instant of the run.
func (w *writer) write(e event) {
	if w.err != nil {
		return
	}
	if e.Ph != phMetadata {
		e.At -= w.zero
	}
	w.buf = append(w.buf[:0], ",\n"...)
	if w.events == 0 {
		w.buf = append(w.buf[:0], '\n')
	}
	w.events++
	if w.buf, w.err = e.append(w.buf); w.err == nil {
		_, w.err = w.to.Write(w.buf)
	}
}

// close ends the trace.
func (w *writer) close() error {
	w.text("\n]}\n")
	if w.err != nil {
		return w.err
	}
	return w.to.Flush()
}

// named is the argument of events that name processes and threads.
type named struct {
	Name string `json:"name"`
}

type sortIndex struct {
	Index int `json:"sort_index"`
}

// id formats a number of a lane for its name: "" of the first, then " #2".
func id(lane int) string {
	if lane == 0 {
		return ""
	}
	return " #" + strconv.Itoa(lane+1)
}
