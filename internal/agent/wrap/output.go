package wrap

import (
	"slices"
	"sync"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/quota"
)

// output decides what of the command's files goes to the runner, and counts the
// rest. Its methods are safe for concurrent use.
type output struct {
	quota *quota.Quota
	send  func(protocol.Message)

	mu      sync.Mutex
	refused map[string]bool // by the runner
	cut     []*protocol.Cut // in the order in which they were
}

func newOutput(limit int64, send func(protocol.Message)) *output {
	return &output{quota: quota.New(limit), send: send, refused: map[string]bool{}}
}

// take takes n bytes of a file and returns how many of them go to the runner.
// Once that is fewer nothing more of the file does.
func (o *output) take(name string, n int) int {
	if o.isRefused(name) {
		return 0
	}
	return o.quota.Take(name, n)
}

// refuse is for a file of which the runner wants no more.
func (o *output) refuse(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refused[name] = true
}

func (o *output) isRefused(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.refused[name]
}

// discard counts bytes that do not go to the runner, and says so when they are
// the first of a file: the agent may be killed before its last words.
func (o *output) discard(name string, n int64) {
	if n <= 0 {
		return
	}
	if o.count(name, n) {
		o.send(protocol.Message{Cut: &protocol.Cut{Name: name, Discarded: n}})
	}
}

// count says whether nothing of the file was discarded before.
func (o *output) count(name string, n int64) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.cut {
		if c.Name == name {
			c.Discarded += n
			return false
		}
	}
	o.cut = append(o.cut, &protocol.Cut{Name: name, Discarded: n, Final: true})
	return true
}

// conclude reports what was discarded in all, when nothing more is.
func (o *output) conclude() {
	o.mu.Lock()
	cut := slices.Clone(o.cut)
	o.mu.Unlock()
	for _, c := range cut {
		o.send(protocol.Message{Cut: c})
	}
}
