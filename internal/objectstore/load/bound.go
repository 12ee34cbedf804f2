package load

import (
	"fmt"
	"time"
)

// Bound is who limited the operations of a stage.
type Bound string

// The bounds. Unclear: nobody was at an end, as with few workers or a rate.
const (
	ClientBound Bound = "client-bound"
	ServerBound Bound = "server-bound"
	Unclear     Bound = "unclear"
)

// What makes a client's figures its own: most of its CPUs in use, or its
// threads waiting for a CPU a good part of the time they ran.
const (
	busyShare   = 0.8
	waitedShare = 0.5
)

// Bound judges by CPU and run queue alone whose figures these are. It is the
// server's only if the client had CPUs to spare and workers were always waiting
// for answers, which a closed loop's are.
func (s *StageResult) Bound() (b Bound, evidence string) {
	if len(s.Hosts) > 0 {
		return s.boundOfHosts()
	}
	u := s.Usage
	waited := 0.0
	if u.CPU > 0 {
		waited = u.Waited.Seconds() / u.CPU.Seconds()
	}
	evidence = fmt.Sprintf("this process used %.0f %% of its %d CPUs, and its threads waited for one %.0f %% as long as they ran", 100*u.Busy(), u.CPUs, 100*waited)
	closed := len(s.Works) > 0
	for i := range s.Works {
		closed = closed && s.Works[i].Work.Rate == nil
	}
	switch {
	case u.Busy() > busyShare || waited > waitedShare:
		return ClientBound, evidence
	case closed && u.Wall > 0:
		return ServerBound, evidence
	}
	return Unclear, evidence
}

// CPUPerOp is what one operation cost this process, of all that ended in the
// stage, ramps too; false if none did.
func (s *StageResult) CPUPerOp() (d time.Duration, ops int64, ok bool) {
	for i := range s.Works {
		for k, c := range s.Works[i].Cells {
			if k.Label != Dropped && k.Check == "" {
				ops += c.N
			}
		}
	}
	if ops == 0 {
		return 0, 0, false
	}
	return s.Usage.CPU / time.Duration(ops), ops, true
}
