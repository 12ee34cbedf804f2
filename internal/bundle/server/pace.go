package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Pace bounds the duration of a body, in either direction: Grace, plus a second for every Rate bytes
// transferred. It tolerates slow senders, not trickling ones.
type Pace struct {
	Grace time.Duration
	Rate  int64
}

var defaultPace = Pace{Grace: 30 * time.Second, Rate: 64 << 10}

// deadline returns when a body that began at began must have made progress beyond n bytes.
func (p Pace) deadline(began time.Time, n int64) time.Time {
	return began.Add(p.Grace + time.Duration(float64(n)/float64(p.Rate)*float64(time.Second)))
}

// pacedBody is a request body with a deadline.
type pacedBody struct {
	body    io.Reader
	control *http.ResponseController
	pace    Pace
	began   time.Time
	n       int64
}

// Read fails with os.ErrDeadlineExceeded if the body takes too long. The deadline ends with the body.
func (p *pacedBody) Read(b []byte) (int, error) {
	deadline := p.pace.deadline(p.began, p.n)
	if time.Now().After(deadline) {
		return 0, fmt.Errorf("body too slow: %w", os.ErrDeadlineExceeded)
	}
	// Fails for writers without deadlines (a test's recorder).
	_ = p.control.SetReadDeadline(deadline)
	n, err := p.body.Read(b)
	p.n += int64(n)
	if errors.Is(err, io.EOF) {
		_ = p.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// pacedAnswer is a response whose reader must take it within a deadline.
type pacedAnswer struct {
	http.ResponseWriter
	control *http.ResponseController
	pace    Pace
	began   time.Time // of the response; zero: not yet
	n       int64
}

// Unwrap is for http.ResponseController.
func (p *pacedAnswer) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// pieceSize is the size of one write or append.
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

func (h *Handler) pace() Pace {
	if h.Pace == (Pace{}) {
		return defaultPace
	}
	return h.Pace
}

// paced sets deadlines for every request before its sender is known.
func (h *Handler) paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		// Without a body, net/http already reads from the connection to notice that it is closed. That read would fail
		// at the deadline, and the request would be cancelled.
		if r.Body != http.NoBody {
			_ = control.SetReadDeadline(time.Now().Add(h.pace().Grace))
		}
		next.ServeHTTP(&pacedAnswer{ResponseWriter: w, control: control, pace: h.pace()}, r)
	})
}
