package agent

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/cnsbench/cnsbench/internal/quota"
)

// lines cuts a stream into lines for people.
type lines struct {
	name string
	emit func(string)
	part []byte

	// room is for lines in the log of the run, which gets them by log; nil: no
	// bound. Behind it only the last lines of what comes at once are emitted.
	room *quota.Lines
	log  func(string)
}

// maxLine bounds what is held of a line without an end.
const maxLine = 8 << 10

func (l *lines) write(data []byte) {
	if l.room != nil && l.room.Full() {
		data = l.last(data)
	}
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

// last is the end of data that has tailLines lines, if it has more.
func (l *lines) last(data []byte) []byte {
	rest := data
	for range tailLines + 1 {
		at := bytes.LastIndexAny(rest, "\r\n")
		if at < 0 {
			return data
		}
		rest = rest[:at]
	}
	l.part = l.part[:0]
	return data[len(rest)+1:]
}

func (l *lines) flush() {
	if line := strings.TrimRight(string(l.part), " \t"); line != "" {
		line = strings.ToValidUTF8(line, "�")
		l.emit(line)
		l.record(line)
	}
	l.part = l.part[:0]
}

// record adds a line to the log of the run while there is room for it.
func (l *lines) record(line string) {
	if l.room == nil {
		return
	}
	switch ok, last := l.room.Take(line); {
	case ok:
		l.log(line)
	case last:
		l.log(fmt.Sprintf("agent: further lines of %s are not repeated here: the log has the first MiB", l.name))
	}
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
