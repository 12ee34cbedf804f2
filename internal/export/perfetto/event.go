package perfetto

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
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

// event is one trace event. Its fields are those of the Trace Event Format.
type event struct {
	Ph    string `json:"ph"`
	Pid   int    `json:"pid"`
	Tid   int    `json:"tid,omitempty"`
	Ts    micros `json:"ts"`
	Cat   string `json:"cat,omitempty"`
	Name  string `json:"name,omitempty"`
	Scope string `json:"s,omitempty"` // of an instant: "t" thread, "g" global
	Args  any    `json:"args,omitempty"`
}

// micros is an instant in ns, written in µs with three decimals.
type micros op.Time

// MarshalJSON writes the number.
func (m micros) MarshalJSON() ([]byte, error) {
	v, sign := int64(m), ""
	if v < 0 {
		v, sign = -v, "-"
	}
	return fmt.Appendf(nil, "%s%d.%03d", sign, v/1000, v%1000), nil
}

// writer writes a trace as a stream. The first error stays.
type writer struct {
	to     *bufio.Writer
	buf    bytes.Buffer
	enc    *json.Encoder
	zero   op.Time // is written as 0
	events int64
	err    error
}

// newWriter starts a trace. Readers expect displayTimeUnit before the events.
func newWriter(to io.Writer, zero op.Time, about any) *writer {
	w := &writer{to: bufio.NewWriterSize(to, 256<<10), zero: zero}
	w.enc = json.NewEncoder(&w.buf)
	w.enc.SetEscapeHTML(false)
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

// write adds an event whose Ts is an instant of the run.
func (w *writer) write(e event) {
	if w.err != nil {
		return
	}
	if e.Ph != phMetadata {
		e.Ts -= micros(w.zero)
	}
	w.buf.Reset()
	if w.err = w.enc.Encode(&e); w.err != nil {
		return
	}
	separator := ",\n"
	if w.events == 0 {
		separator = "\n"
	}
	w.events++
	w.text(separator)
	if w.err == nil {
		_, w.err = w.to.Write(bytes.TrimSuffix(w.buf.Bytes(), []byte("\n")))
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
