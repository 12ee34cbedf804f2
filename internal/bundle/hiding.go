package bundle

import (
	"sync"

	"github.com/cnsbench/cnsbench/internal/redact"
)

// hiding removes secrets from lines and messages: those of a form that package redact knows, and known values.
type hiding struct {
	mu      sync.Mutex
	lines   *redact.Lines
	sources map[string]*redact.Source
}

func newHiding() *hiding {
	return &hiding{lines: redact.NewLines(), sources: map[string]*redact.Source{}}
}

// Hide makes the writer hide values in all lines and messages that are recorded after it.
func (w *Writer) Hide(values ...string) {
	w.text.mu.Lock()
	defer w.text.mu.Unlock()
	w.text.lines = redact.NewLines(values...)
}

// line hides the secrets of the next line of a source, also of a key that is printed over several lines.
func (h *hiding) line(source, s string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	from := h.sources[source]
	if from == nil {
		from = &redact.Source{}
		h.sources[source] = from
	}
	return h.lines.Line(from, s)
}

// clean hides the secrets of a message.
func (h *hiding) clean(s string) string {
	if s == "" {
		return ""
	}
	h.mu.Lock()
	lines := h.lines
	h.mu.Unlock()
	return lines.Text(s)
}
