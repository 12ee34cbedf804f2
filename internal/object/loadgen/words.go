package loadgen

import (
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/cnsbench/cnsbench/internal/object/client"
)

// Bounds of the errors of servers: how many different codes a work counts, and how much of a message is kept.
const (
	mostWords  = 100
	mostDetail = 300 // bytes
)

// words are the error codes of servers; the workers of a work share them.
type words struct {
	mu    sync.Mutex
	known map[string]bool
}

// label is the outcome of an operation, printable and from a bounded set.
func (w *words) label(r *client.Result) string {
	l := r.Label()
	if r.Code == "" {
		return l
	}
	l = printable(l)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known == nil {
		w.known = map[string]bool{}
	}
	switch {
	case w.known[l]:
	case len(w.known) < mostWords:
		w.known[l] = true
	default:
		return strconv.Itoa(r.Status) + " (more words)"
	}
	return l
}

// detail is what can be kept of a message.
func detail(text string) string {
	if len(text) > mostDetail {
		text = text[:mostDetail] + "…"
	}
	return printable(text)
}

// printable has nothing that moves a terminal's cursor or that JSON would change.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
