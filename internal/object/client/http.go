package client

import (
	"context"
	"fmt"
	"hash"
	"strconv"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/payload"
	"github.com/cnsbench/cnsbench/internal/op"
)

// HTTP is what the clients of HTTP stores have in common: a connection, an
// exchange, a checker, and the errors that servers explain in a body.
type HTTP struct {
	Conn *httpconn.Conn
	X    httpconn.Exchange
	// Answer is the body of the last response, as far as it was kept: always for errors, otherwise if Keep is set.
	Answer []byte

	plain   bool // no TLS
	keep    int
	checker payload.Checker
	sum     interface{ Write(p []byte) } // where a body is checked; nil: nowhere
	// Hash, if not nil, receives the body of the next Get.
	Hash    hash.Hash
	counted int64
}

// maxAnswer is how much of a response is kept: a listing of 1000 keys is less.
const maxAnswer = 4 << 20

// maxError is how much of an explanation is kept.
const maxError = 4 << 10

// NewHTTP prepares a client's connection.
func NewHTTP(ep httpconn.Endpoint) *HTTP {
	h := &HTTP{Conn: httpconn.NewConn(ep), plain: ep.TLS == nil}
	h.X.Sink = h.sink
	return h
}

func (h *HTTP) sink(status int, p []byte) {
	limit := h.keep
	if status >= 300 {
		limit = maxError
	} else {
		h.counted += int64(len(p))
		if h.sum != nil {
			h.sum.Write(p)
		}
		if h.Hash != nil {
			_, _ = h.Hash.Write(p)
		}
	}
	if room := limit - len(h.Answer); room > 0 {
		h.Answer = append(h.Answer, p[:min(room, len(p))]...)
	}
}

// Begin makes res ready for the exchanges of one operation.
func (h *HTTP) Begin(res *Result) { *res = Result{Started: op.Never, First: op.Never} }

// Send does one exchange, with X.Head, Content, Size, Chunked and NoBody set by the caller, and adds it to res. False
// without a response.
func (h *HTTP) Send(ctx context.Context, res *Result, keep bool) bool {
	h.Answer, h.keep, h.counted = h.Answer[:0], 0, 0
	if keep {
		h.keep = maxAnswer
	}
	f := h.Conn.Do(ctx, &h.X)
	x := &h.X
	res.Attempts++
	if !res.Started.Known() {
		res.Started = x.Began
	}
	if x.Connected != x.Began {
		res.Connected = true
		if end := x.Connected; end.Known() {
			res.Connect += int64(end - x.Began)
		} else {
			res.Connect += int64(x.Done - x.Began)
		}
	}
	res.First, res.Ended, res.Drain = x.First, x.Done, 0
	if x.First.Known() {
		res.Drain = int64(x.Done - x.First)
	}
	res.Status, res.Code, res.Detail, res.Failure = x.Status, "", "", ""
	if f != nil {
		res.Status, res.Failure, res.Detail = 0, f.Kind, f.Err.Error()
		return false
	}
	return true
}

// Read does the exchange of a Get: it counts the body and, with Verify, checks it.
func (h *HTTP) Read(ctx context.Context, r *Request, res *Result) bool {
	if len(r.Offsets) > 0 {
		return h.readRanges(ctx, r, res)
	}
	h.sum = nil
	if r.Verify {
		h.sum = &h.checker
		offset := r.Offset
		if r.Length < 0 {
			offset = 0
		}
		h.checker.Begin(payload.Key(r.Container, r.Object), offset, r.Length, r.Zero)
	}
	answered := h.Send(ctx, res, false)
	h.sum = nil
	res.Bytes = h.counted
	if !answered || res.Status < 200 || res.Status > 299 {
		return answered
	}
	if r.Length >= 0 && res.Status == 200 && (r.Offset > 0 || h.counted > r.Length) {
		res.Code, res.Violation = "RangeIgnored", payload.Misplaced
		return true
	}
	if r.Verify {
		var at int64
		if res.Violation, at = h.checker.End(); res.Violation != payload.Sound {
			res.Detail = fmt.Sprintf("%s/%s is %s at byte %d", r.Container, r.Object, res.Violation, at)
		}
		res.Writer = h.checker.Writer()
	}
	if res.Violation == payload.Sound && r.Length >= 0 && h.counted != r.Length && res.Status == 206 {
		res.Violation, res.Detail = payload.Short, fmt.Sprintf("%s/%s: %d bytes of %d", r.Container, r.Object,
			h.counted, r.Length)
	}
	return true
}

// Contents is the content of a Put as wire takes it.
type Contents struct {
	ID     payload.ID
	Offset int64 // of the part that is sent
}

// Read fills dst.
func (c *Contents) Read(dst []byte, offset int64) error {
	c.ID.Fill(dst, c.Offset+offset)
	return nil
}

// Text is a short content.
type Text []byte

// Read fills dst.
func (t Text) Read(dst []byte, offset int64) error {
	copy(dst, t[offset:])
	return nil
}

// Timeout is a setting in milliseconds, as COSBench has it; the default is
// what that tool's S3 adaptor takes, 30 s.
func Timeout(text string) (time.Duration, error) {
	if text == "" {
		return 30 * time.Second, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 1 || ms > 86_400_000 {
		return 0, fmt.Errorf("invalid timeout=%s: want milliseconds, up to a day", text)
	}
	return time.Duration(ms) * time.Millisecond, nil
}
