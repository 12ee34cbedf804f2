package agent

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/cnsbench/cnsbench/internal/quota"
)

// lineWriter splits a byte stream into lines and passes them to emit.
type lineWriter struct {
	name    string
	emit    func(string)
	partial []byte

	// quota bounds the lines passed to log, the log of the run; nil: no lines go to log. Once the quota is
	// used up, only the last lines of each write are emitted.
	quota *quota.Lines
	log   func(string)
}

// maxLine bounds the bytes kept of one line.
const maxLine = 8 << 10

func (l *lineWriter) write(data []byte) {
	if l.quota != nil && l.quota.Full() {
		data = l.last(data)
	}
	for len(data) > 0 {
		line, rest, found := cut(data)
		l.partial = append(l.partial, line[:min(len(line), maxLine-min(len(l.partial), maxLine))]...)
		if found {
			l.flush()
		}
		data = rest
	}
}

// cut splits at the first line end; a carriage return ends a line too (progress bars).
func cut(data []byte) (line, rest []byte, found bool) {
	for i, c := range data {
		if c == '\n' || c == '\r' {
			return data[:i], data[i+1:], true
		}
	}
	return data, nil, false
}

// last returns the last tailLines lines of data.
func (l *lineWriter) last(data []byte) []byte {
	rest := data
	for range tailLines + 1 {
		at := bytes.LastIndexAny(rest, "\r\n")
		if at < 0 {
			return data
		}
		rest = rest[:at]
	}
	l.partial = l.partial[:0]
	return data[len(rest)+1:]
}

func (l *lineWriter) flush() {
	if line := strings.TrimRight(string(l.partial), " \t"); line != "" {
		line = strings.ToValidUTF8(line, "�")
		l.emit(line)
		l.record(line)
	}
	l.partial = l.partial[:0]
}

// record passes a line to the run's log while the quota lasts.
func (l *lineWriter) record(line string) {
	if l.quota == nil {
		return
	}
	switch ok, last := l.quota.Take(line); {
	case ok:
		l.log(line)
	case last:
		l.log(fmt.Sprintf("agent: further lines of %s are %s", l.name, quota.LimitReached))
	}
}

// tail keeps the last tailLines lines.
type tail struct {
	mu   sync.Mutex
	last []string
}

const tailLines = 10

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.last) == tailLines {
		t.last = t.last[1:]
	}
	t.last = append(t.last, line)
}

// appendTo returns message followed by the kept lines.
func (t *tail) appendTo(message string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.last
	if message != "" {
		all = append([]string{message}, all...)
	}
	return strings.Join(all, "\n")
}
