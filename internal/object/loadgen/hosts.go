package loadgen

import (
	"fmt"
	"strings"
)

// Judge returns an error if more operations failed than the work accepts, or if nothing was measured although the
// work was not stopped.
func (w *WorkResult) Judge(stopped bool) error { return judge(w, stopped) }

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
