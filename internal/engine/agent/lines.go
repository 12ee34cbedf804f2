package agent

import (
	"strings"
	"sync"
)

// lines cuts a stream into lines for people.
type lines struct {
	emit func(string)
	part []byte
}

// maxLine bounds what is held of a line without an end.
const maxLine = 8 << 10

func (l *lines) write(data []byte) {
	for len(data) > 0 {
		line, rest, found := cut(data)
		l.part = append(l.part, line[:min(len(line), maxLine-min(len(l.part), maxLine))]...)
		if found {
			l.flush()
		}
		data = rest
	}
}

// cut splits at the first line end; a carriage return is one too (progress bars).
func cut(data []byte) (line, rest []byte, found bool) {
	for i, c := range data {
		if c == '\n' || c == '\r' {
			return data[:i], data[i+1:], true
		}
	}
	return data, nil, false
}

func (l *lines) flush() {
	if line := strings.TrimRight(string(l.part), " \t"); line != "" {
		l.emit(strings.ToValidUTF8(line, "�"))
	}
	l.part = l.part[:0]
}

// tail keeps the last lines of a log.
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

// under is a message with the log's last lines beneath it.
func (t *tail) under(message string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.last
	if message != "" {
		all = append([]string{message}, all...)
	}
	return strings.Join(all, "\n")
}
