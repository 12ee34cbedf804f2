package queue

import (
	"bytes"
	"strings"
	"sync"
)

// maxTail is the number of bytes that are kept of a submission's standard error.
const maxTail = 16 << 10

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu  sync.Mutex
	end []byte
	cut bool // something before was dropped
}

// Write implements io.Writer. It never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if len(b) > maxTail {
		b, t.cut = b[len(b)-maxTail:], true
	}
	if more := len(t.end) + len(b) - maxTail; more > 0 {
		t.end, t.cut = append(t.end[:0], t.end[more:]...), true
	}
	t.end = append(t.end, b...)
	return n, nil
}

// lines returns the lines at the end. One that was cut is left out, unless there is no other.
func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	end := t.end
	if _, rest, ok := bytes.Cut(end, []byte("\n")); ok && t.cut && len(rest) > 0 {
		end = rest
	}
	text := strings.TrimRight(strings.ToValidUTF8(string(end), "�"), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
