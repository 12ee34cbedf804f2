package loadgen

import (
	"fmt"
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
)

// HostResult is what became of a stage on one of several hosts. Its times are
// of the run.
type HostResult struct {
	Host string
	StageResult
	// Start is when its works began, with ± in ns, by the host's own clock; Never if they did not. Intended is the
	// common start of all hosts.
	Intended, Start op.Time
	StartErr        int64
	// Lost is why the host was lost; nil: it ended. Missing is, for a lost host, its share of each work, with the
	// known and the unknown part.
	Lost    error
	Missing []string
}

// Judge returns an error if more operations failed than the work accepts, or if nothing was measured although the
// work was not stopped.
func (w *WorkResult) Judge(told bool) error { return judge(w, told) }

// boundOfHosts is the client's if it is on any host: its figures are in all.
func (s *StageResult) boundOfHosts() (Bound, string) {
	var b Bound
	var said []string
	for i := range s.Hosts {
		h := &s.Hosts[i]
		if len(h.Works) == 0 || h.Lost != nil {
			continue
		}
		of, evidence := h.Bound()
		if of == ClientBound && b != ClientBound {
			said = nil
		}
		if of == ClientBound || b != ClientBound {
			said = append(said, fmt.Sprintf("%s: %s", h.Host, evidence))
		}
		switch {
		case b == "" || of == ClientBound:
			b = of
		case b == ServerBound:
			b = of // unclear on one is unclear of all
		}
	}
	if b == "" {
		b = Unclear
	}
	const most = 4
	if n := len(said) - most; n > 0 {
		said = append(said[:most], fmt.Sprintf("and %d hosts more", n))
	}
	return b, strings.Join(said, "; ")
}
