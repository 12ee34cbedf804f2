package csiproxy

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

// maxStreams bounds the concurrently followed calls of one connection.
const maxStreams = 10_000

// tap parses one connection. Its two directions may be fed concurrently.
type tap struct {
	log    *Log
	driver func(learned string) string // returns the driver's name and stores a learned one
	node   string

	mu         sync.Mutex
	streams    map[uint32]*stream
	err        error // why it gave up
	lastActive int64 // time of the last bytes, or of its creation
	requests   *frames
	responses  *frames
}

// stream is one call.
type stream struct {
	rec       *Record
	begun     bool
	known     bool
	method    method
	deadline  int64 // on the proxy's clock; 0: none
	req, resp grpcMessage
	answer    Subject
}

func newTap(log *Log, node string, driver func(string) string) *tap {
	t := &tap{log: log, node: node, driver: driver, streams: map[uint32]*stream{}}
	t.requests, t.responses = newFrames(len(preface)), newFrames(0)
	t.requests.onHeaders, t.requests.onData, t.requests.onEnd, t.requests.onReset = t.requestHeaders, t.requestData, t.requestEnd, t.requestReset
	t.responses.onHeaders, t.responses.onData, t.responses.onEnd, t.responses.onReset = t.responseHeaders, t.responseData, t.responseEnd, t.responseReset
	return t
}

// fromClient parses bytes on their way to the driver, read at an instant.
func (t *tap) fromClient(b []byte, at int64) { t.feed(t.requests, b, at) }

// fromDriver parses bytes on their way to the client.
func (t *tap) fromDriver(b []byte, at int64) { t.feed(t.responses, b, at) }

// feed parses bytes. A failure ends the tap, not the connection.
func (t *tap) feed(f *frames, b []byte, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			t.giveUp(fmt.Errorf("parser panic: %v", p), at)
		}
	}()
	if t.err != nil {
		return
	}
	t.lastActive = at
	if err := f.feed(b, at); err != nil {
		t.giveUp(err, at)
	}
}

func (t *tap) giveUp(err error, at int64) {
	t.err = err
	t.log.countUnseen(1) // at least 1: later calls of the connection are not parsed
	t.endAll(at, CodeUnseen, "the connection cannot be parsed any more: "+err.Error())
}

func (t *tap) endAll(at int64, code, message string) {
	for _, id := range slices.Sorted(maps.Keys(t.streams)) {
		t.end(t.streams[id], at, code, message)
	}
	clear(t.streams)
}

// close ends the calls in flight when the connection is closed. It returns why the tap gave up, if it did.
func (t *tap) close(at int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endAll(at, codes.Unavailable.String(), "the connection was closed")
	return t.err
}

// idleAfter is how long a connection is left to a client that has just opened it or may call again.
const idleAfter = int64(250 * time.Millisecond)

// idle reports that no call is in flight and none has been for idleAfter. A connection that cannot be parsed
// is never idle.
func (t *tap) idle(now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err == nil && len(t.streams) == 0 && now-t.lastActive > idleAfter
}

// requestHeaders handles the headers of a request.
func (t *tap) requestHeaders(id uint32, h headers, last bool, at int64) {
	if _, ok := t.streams[id]; ok {
		return // client trailers, which gRPC does not use
	}
	if len(t.streams) >= maxStreams {
		t.log.countUnseen(1)
		return
	}
	m, known := methods()[h.path]
	s := &stream{rec: &Record{RPC: clip(h.path), Start: at}, known: known, method: m}
	if h.timeout > 0 {
		s.deadline = at + int64(h.timeout)
	}
	t.streams[id] = s
	if known {
		s.rec.RPC = m.name
		s.req.wanted, s.resp.wanted = true, len(m.response) > 0
	}
	if !known || last {
		t.begin(s)
	}
}

func (t *tap) begin(s *stream) {
	if s.begun {
		return
	}
	s.begun = true
	s.rec.Driver = t.driver("")
	if s.rec.Node == "" && s.method.node {
		s.rec.Node = t.node
	}
	t.log.begin(s.rec)
}

// requestData handles bytes of a request.
func (t *tap) requestData(id uint32, b []byte) {
	if s := t.streams[id]; s != nil && s.req.add(b) {
		subject := s.req.read(s.method.request)
		if !s.begun {
			s.rec.Subject = subject
			t.begin(s)
		}
	}
}

// requestEnd handles the end of a request, which may have had no message.
func (t *tap) requestEnd(id uint32, _ int64) {
	if s := t.streams[id]; s != nil {
		t.begin(s)
	}
}

// requestReset handles a stream reset by the client.
func (t *tap) requestReset(id uint32, code uint32, at int64) {
	t.reset(id, at, codes.Canceled, fmt.Sprintf("the client reset the stream (HTTP/2 code %d)", code))
}

// deadlineTolerance covers the rounding of deadlines (up to a millisecond) and the delay between the client
// and the proxy.
const deadlineTolerance = int64(5 * time.Millisecond)

// reset ends a call that either side reset. Both sides reset the stream when its deadline passes.
func (t *tap) reset(id uint32, at int64, code codes.Code, message string) {
	s := t.streams[id]
	if s == nil {
		return
	}
	delete(t.streams, id)
	if s.deadline > 0 && at >= s.deadline-deadlineTolerance {
		code, message = codes.DeadlineExceeded, "the client's deadline passed"
	}
	t.end(s, at, code.String(), message)
}

// responseData handles bytes of a response.
func (t *tap) responseData(id uint32, b []byte) {
	if s := t.streams[id]; s != nil && s.resp.add(b) {
		s.answer = s.resp.read(s.method.response)
		if s.method.name == "GetPluginInfo" {
			t.driver(s.answer.Name)
		}
	}
}

// responseEnd handles the end of a call without a status.
func (t *tap) responseEnd(id uint32, at int64) { t.responseHeaders(id, headers{}, true, at) }

// responseHeaders handles headers or trailers of a response.
func (t *tap) responseHeaders(id uint32, h headers, last bool, at int64) {
	s := t.streams[id]
	if s == nil || !last {
		return
	}
	delete(t.streams, id)
	code := codes.Unknown.String()
	message := h.message
	if n, err := strconv.ParseUint(h.status, 10, 32); err == nil {
		code = codes.Code(n).String()
	} else {
		message = strings.TrimSpace("no gRPC status received " + h.http)
	}
	if text, err := url.PathUnescape(message); err == nil {
		message = text // percent-encoded by gRPC
	}
	t.end(s, at, code, message)
}

// responseReset handles a stream reset by the driver.
func (t *tap) responseReset(id uint32, code uint32, at int64) {
	t.reset(id, at, codes.Unavailable, fmt.Sprintf("the driver reset the stream (HTTP/2 code %d)", code))
}

func (t *tap) end(s *stream, at int64, code, message string) {
	t.begin(s)
	s.req.wipe()
	s.resp.wipe()
	t.log.end(s.rec, s.answer, at, code, message)
}

// maxMessage bounds the kept bytes of a message. CSI messages have some kilobytes; of a larger one the
// beginning is parsed.
const maxMessage = 256 << 10

// grpcMessage collects the first message of a stream in one direction.
type grpcMessage struct {
	wanted bool
	prefix [5]byte // compressed, length
	got    int     // bytes of prefix
	size   int
	body   []byte
}

// add appends bytes and reports whether the message can be read.
func (m *grpcMessage) add(b []byte) bool {
	if !m.wanted {
		return false
	}
	n := copy(m.prefix[m.got:], b)
	m.got += n
	b = b[n:]
	if m.got < len(m.prefix) {
		return false
	}
	m.size = min(maxMessage, int(m.prefix[1])<<24|int(m.prefix[2])<<16|int(m.prefix[3])<<8|int(m.prefix[4]))
	if m.body == nil {
		m.body = make([]byte, 0, m.size) // preallocated, so that it can be wiped
	}
	m.body = append(m.body, b[:min(len(b), m.size-len(m.body))]...)
	if len(m.body) < m.size {
		return false
	}
	m.wanted = false
	if m.prefix[0] != 0 {
		m.wipe() // compressed: not used by CSI clients
	}
	return true
}

// read extracts the fields and wipes the message, which may contain secrets.
func (m *grpcMessage) read(f fields) Subject {
	defer m.wipe()
	return extract(m.body, f)
}

func (m *grpcMessage) wipe() {
	clear(m.body)
	m.body, m.wanted = nil, false
}

// timeout parses gRPC's deadline format: digits and a unit; 0: no deadline.
func timeout(s string) time.Duration {
	if len(s) < 2 || len(s) > 9 {
		return 0
	}
	units := map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second,
		'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond}
	n, err := strconv.ParseInt(s[:len(s)-1], 10, 64)
	unit := units[s[len(s)-1]]
	if err != nil || n < 0 || unit == 0 || n > int64(1<<62)/int64(unit) {
		return 0
	}
	return time.Duration(n) * unit
}
