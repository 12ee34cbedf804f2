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

// maxStreams bounds how many calls of one connection are followed at once.
const maxStreams = 10_000

// tap reads along on one connection. Its two directions may be fed at once.
type tap struct {
	log    *Log
	driver func(learned string) string // the driver's name; tells it where learned
	node   string

	mu       sync.Mutex
	streams  map[uint32]*stream
	problem  error // it gave up
	active   int64 // when it was fed last, or made
	requests *frames
	answers  *frames
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
	t.requests, t.answers = newFrames(len(preface)), newFrames(0)
	t.requests.onHeaders, t.requests.onData, t.requests.onEnd, t.requests.onReset = t.opened, t.asked, t.askedAll, t.cancelled
	t.answers.onHeaders, t.answers.onData, t.answers.onEnd, t.answers.onReset = t.headed, t.answered, t.brokenOff, t.refused
	return t
}

// fromClient takes bytes on their way to the driver, read at an instant.
func (t *tap) fromClient(b []byte, at int64) { t.feed(t.requests, b, at) }

// fromDriver takes bytes on their way to the client.
func (t *tap) fromDriver(b []byte, at int64) { t.feed(t.answers, b, at) }

// feed parses; whatever is wrong with that ends the tap, not the connection.
func (t *tap) feed(f *frames, b []byte, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			t.giveUp(fmt.Errorf("a fault of the parser: %v", p), at)
		}
	}()
	if t.problem != nil {
		return
	}
	t.active = at
	if err := f.feed(b, at); err != nil {
		t.giveUp(err, at)
	}
}

func (t *tap) giveUp(err error, at int64) {
	t.problem = err
	t.log.miss(1) // at least: the connection's later calls are not seen
	t.endAll(at, CodeUnseen, "the connection cannot be read any more: "+err.Error())
}

func (t *tap) endAll(at int64, code, message string) {
	for _, id := range slices.Sorted(maps.Keys(t.streams)) {
		t.end(t.streams[id], at, code, message)
	}
	clear(t.streams)
}

// closed ends what is in flight when the connection is gone. It returns why
// the tap gave up, if it did.
func (t *tap) closed(at int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endAll(at, codes.Unavailable.String(), "the connection was closed")
	return t.problem
}

// settled is how long a connection is left to a client that has just opened
// it, or may be about to call again.
const settled = int64(250 * time.Millisecond)

// idle says that no call is in flight, and that none seems to be coming. A
// connection that cannot be read is never idle.
func (t *tap) idle(now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.problem == nil && len(t.streams) == 0 && now-t.active > settled
}

// opened: the headers of a request.
func (t *tap) opened(id uint32, h headers, last bool, at int64) {
	if _, ok := t.streams[id]; ok {
		return // a client's trailers: gRPC has none
	}
	if len(t.streams) >= maxStreams {
		t.log.miss(1)
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

// asked: bytes of a request.
func (t *tap) asked(id uint32, b []byte) {
	if s := t.streams[id]; s != nil && s.req.add(b) {
		subject := s.req.read(s.method.request)
		if !s.begun {
			s.rec.Subject = subject
			t.begin(s)
		}
	}
}

// askedAll: the request is whole; it may have had no message.
func (t *tap) askedAll(id uint32, _ int64) {
	if s := t.streams[id]; s != nil {
		t.begin(s)
	}
}

// cancelled: the client gave a call up.
func (t *tap) cancelled(id uint32, code uint32, at int64) {
	t.reset(id, at, codes.Canceled, fmt.Sprintf("the client gave up (HTTP/2 code %d)", code))
}

// almost is how far deadlines are rounded on the wire, up to a millisecond,
// and how much later than the client we read them.
const almost = int64(5 * time.Millisecond)

// reset ends a call by either side. Whose timer was first does not matter:
// both reset the stream when its deadline passes.
func (t *tap) reset(id uint32, at int64, code codes.Code, message string) {
	s := t.streams[id]
	if s == nil {
		return
	}
	delete(t.streams, id)
	if s.deadline > 0 && at >= s.deadline-almost {
		code, message = codes.DeadlineExceeded, "the client's deadline passed"
	}
	t.end(s, at, code.String(), message)
}

// answered: bytes of a response.
func (t *tap) answered(id uint32, b []byte) {
	if s := t.streams[id]; s != nil && s.resp.add(b) {
		s.answer = s.resp.read(s.method.response)
		if s.method.name == "GetPluginInfo" {
			t.driver(s.answer.Name)
		}
	}
}

// brokenOff: the driver ended a call without a status.
func (t *tap) brokenOff(id uint32, at int64) { t.headed(id, headers{}, true, at) }

// headed: headers or trailers of a response.
func (t *tap) headed(id uint32, h headers, last bool, at int64) {
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
		message = strings.TrimSpace("no gRPC status came " + h.http)
	}
	if text, err := url.PathUnescape(message); err == nil {
		message = text // gRPC percent-encodes it
	}
	t.end(s, at, code, message)
}

// refused: the driver reset a call.
func (t *tap) refused(id uint32, code uint32, at int64) {
	t.reset(id, at, codes.Unavailable, fmt.Sprintf("the driver reset the stream (HTTP/2 code %d)", code))
}

func (t *tap) end(s *stream, at int64, code, message string) {
	t.begin(s)
	s.req.wipe()
	s.resp.wipe()
	t.log.end(s.rec, s.answer, at, code, message)
}

// maxMessage bounds how much of a message is kept until it is whole. CSI's
// are some kilobytes; of a larger one the beginning is read.
const maxMessage = 256 << 10

// grpcMessage gathers the first message of a stream in one direction.
type grpcMessage struct {
	wanted bool
	prefix [5]byte // compressed, length
	got    int     // bytes of prefix
	size   int
	body   []byte
}

// add takes bytes and says that the message can be read now.
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
		m.body = make([]byte, 0, m.size) // in one piece, so that it can be wiped
	}
	m.body = append(m.body, b[:min(len(b), m.size-len(m.body))]...)
	if len(m.body) < m.size {
		return false
	}
	m.wanted = false
	if m.prefix[0] != 0 {
		m.wipe() // compressed, which no client of CSI asks for
	}
	return true
}

// read extracts the fields and wipes the rest: there may be secrets in it.
func (m *grpcMessage) read(f fields) Subject {
	defer m.wipe()
	return extract(m.body, f)
}

func (m *grpcMessage) wipe() {
	clear(m.body)
	m.body, m.wanted = nil, false
}

// timeout reads gRPC's form of a deadline: digits and a unit. 0: there is none.
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
