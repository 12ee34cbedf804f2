package wrap

import (
	"slices"
	"sync"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/quota"
)

// output decides which bytes of the command's files go to the runner and counts the discarded ones. Its
// methods are safe for concurrent use.
type output struct {
	quota *quota.Quota
	send  func(protocol.Message)

	mu      sync.Mutex
	refused map[string]bool // files that the runner does not want any more
	cuts    []*protocol.Cut // in order of the first discarded byte
}

func newOutput(limit int64, send func(protocol.Message)) *output {
	return &output{quota: quota.New(limit), send: send, refused: map[string]bool{}}
}

// allow returns how many of n bytes of a file go to the runner. Once that is less than n, no further bytes of
// the file do.
func (o *output) allow(name string, n int) int {
	if o.isRefused(name) {
		return 0
	}
	return o.quota.Take(name, n)
}

// refuse marks a file of which the runner wants no more.
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

// addDiscarded counts discarded bytes and reports the first of each file at once, since the agent may be
// killed before its final report.
func (o *output) addDiscarded(name string, n int64) {
	if n <= 0 {
		return
	}
	if o.record(name, n) {
		o.send(protocol.Message{Cut: &protocol.Cut{Name: name, Discarded: n}})
	}
}

// record adds n and reports whether these are the first discarded bytes of the file.
func (o *output) record(name string, n int64) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.cuts {
		if c.Name == name {
			c.Discarded += n
			return false
		}
	}
	o.cuts = append(o.cuts, &protocol.Cut{Name: name, Discarded: n, Final: true})
	return true
}

// reportTotals sends the final numbers of discarded bytes.
func (o *output) reportTotals() {
	o.mu.Lock()
	cut := slices.Clone(o.cuts)
	o.mu.Unlock()
	for _, c := range cut {
		o.send(protocol.Message{Cut: c})
	}
}
