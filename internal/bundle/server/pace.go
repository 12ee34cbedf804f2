package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Pace bounds how long a whole body may take, in either direction: Grace, and a
// second more for every Rate bytes that have passed. A sender that is only slow
// is waited for; one that trickles is not.
type Pace struct {
	Grace time.Duration
	Rate  int64
}

var defaultPace = Pace{Grace: 30 * time.Second, Rate: 64 << 10}

// deadline is when a body that began then, and of which n bytes have passed,
// must have gone on.
func (p Pace) deadline(began time.Time, n int64) time.Time {
	return began.Add(p.Grace + time.Duration(float64(n)/float64(p.Rate)*float64(time.Second)))
}

// pacedBody is the body of a request, with a deadline.
type pacedBody struct {
	body    io.Reader
	control *http.ResponseController
	pace    Pace
	began   time.Time
	n       int64
}

func (h *Handler) body(w http.ResponseWriter, r *http.Request) io.Reader {
	return &pacedBody{body: r.Body, control: http.NewResponseController(w), pace: h.pace(), began: time.Now()}
}

// Read fails with os.ErrDeadlineExceeded if the body takes too long. Where the
// body ends, so does the deadline: what follows may take its time.
func (p *pacedBody) Read(b []byte) (int, error) {
	deadline := p.pace.deadline(p.began, p.n)
	if time.Now().After(deadline) {
		return 0, fmt.Errorf("the body comes too slowly: %w", os.ErrDeadlineExceeded)
	}
	// Without the power to set a deadline (a test's recorder) there is none.
	_ = p.control.SetReadDeadline(deadline)
	n, err := p.body.Read(b)
	p.n += int64(n)
	if errors.Is(err, io.EOF) {
		_ = p.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// pacedAnswer is an answer whose reader must take it within a deadline.
type pacedAnswer struct {
	http.ResponseWriter
	control *http.ResponseController
	pace    Pace
	began   time.Time // of the answer; zero: not yet
	n       int64
}

// Unwrap is for http.ResponseController.
func (p *pacedAnswer) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// pieceSize is what is written, or appended, at once.
const pieceSize = 256 << 10

func (p *pacedAnswer) Write(b []byte) (written int, err error) {
	if p.began.IsZero() {
		p.began = time.Now()
	}
	for first := true; first || written < len(b); first = false {
		_ = p.control.SetWriteDeadline(p.pace.deadline(p.began, p.n))
		n, err := p.ResponseWriter.Write(b[written:min(len(b), written+pieceSize)])
		written += n
		p.n += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
