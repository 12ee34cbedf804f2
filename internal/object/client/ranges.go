package client

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/object/payload"
)

// RangeHeader appends the value of the header Range of a Get.
func (r *Request) RangeHeader(b []byte) []byte {
	b = append(b, "bytes="...)
	if len(r.Offsets) == 0 {
		return appendRange(b, r.Offset, r.Length)
	}
	for i, offset := range r.Offsets {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendRange(b, offset, r.Length)
	}
	return b
}

func appendRange(b []byte, offset, length int64) []byte {
	return strconv.AppendInt(append(strconv.AppendInt(b, offset, 10), '-'), offset+length-1, 10)
}

// readRanges does the exchange of a Get with several ranges. A server that sends something else has ignored them.
func (h *HTTP) readRanges(ctx context.Context, r *Request, res *Result) bool {
	p := byteRanges{r: r, checker: &h.checker}
	h.sum = &p
	answered := h.Send(ctx, res, false)
	h.sum = nil
	res.Bytes = p.bytes
	if !answered || res.Status < 200 || res.Status > 299 {
		return answered
	}
	switch {
	case res.Status != 206, !strings.HasPrefix(h.X.Header("content-type"), "multipart/byteranges"):
		res.Bytes, res.Code, res.Violation = h.counted, "RangeIgnored", payload.Misplaced
	case p.violation == payload.Sound && p.part < len(r.Offsets):
		res.Violation, res.Detail = payload.Short, fmt.Sprintf("%d of %d ranges", p.part, len(r.Offsets))
	default:
		res.Violation = p.violation
	}
	return true
}

// byteRanges takes a body of multipart/byteranges apart as it arrives: each range has a header of its own.
type byteRanges struct {
	r         *Request
	checker   *payload.Checker
	part      int    // ranges that are complete
	head      []byte // of the next
	left      int64  // of the content of this one
	bytes     int64
	violation payload.Violation
}

// maxPartHead is the greatest length of the header of a range.
const maxPartHead = 4 << 10

// Write takes a piece of the body.
func (b *byteRanges) Write(p []byte) {
	for len(p) > 0 && b.violation == payload.Sound && b.part < len(b.r.Offsets) {
		if b.left == 0 {
			p = b.header(p)
			continue
		}
		n := min(b.left, int64(len(p)))
		if b.r.Verify {
			b.checker.Write(p[:n])
		}
		b.bytes, b.left, p = b.bytes+n, b.left-n, p[n:]
		if b.left > 0 {
			continue
		}
		if b.part++; b.r.Verify {
			b.violation, _ = b.checker.End()
		}
	}
}

// header takes the header of a range from p, and returns what is behind it.
func (b *byteRanges) header(p []byte) []byte {
	b.head = append(b.head, p...)
	head, rest, whole := bytes.Cut(b.head, []byte("\r\n\r\n"))
	if !whole {
		if len(b.head) > maxPartHead {
			b.violation = payload.Foreign
		}
		return nil
	}
	offset := b.r.Offsets[b.part]
	if !bytes.Contains(head, fmt.Appendf(nil, "bytes %d-%d/", offset, offset+b.r.Length-1)) {
		b.violation = payload.Misplaced
	}
	if b.left = b.r.Length; b.r.Verify {
		b.checker.Begin(payload.Key(b.r.Container, b.r.Object), offset, b.r.Length, b.r.Zero)
	}
	rest = p[len(p)-len(rest):]
	b.head = b.head[:0]
	return rest
}
