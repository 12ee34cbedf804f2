package loadgen

import (
	"fmt"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/model"
)

// What makes a client's figures its own: nearly as many operations as it can do
// at all, most of its CPUs in use, or its threads waiting for a CPU a good part of
// the time they ran, and of the time that operations took. A client that used and wanted few CPUs is not the limit,
// however little time its operations took, as refused ones do.
const (
	ceilingShare = 0.8
	busyShare    = 0.8
	waitedShare  = 0.5
	waitedOfOps  = 0.1
	leastWanted  = 0.05
)

// Bound judges by the client's ceiling, where it was measured, and else by its CPU time and run queue. The stage is
// server-bound only if the client had spare CPUs and its workers always waited for responses, as in a closed loop.
func (s *StageResult) Bound() (b Bound, evidence string) {
	if len(s.Hosts) > 0 {
		return s.boundOfHosts()
	}
	u := s.Usage
	waited, ofOps, part := 0.0, 0.0, "no operation ended meanwhile" // then there is nothing to be bound
	if u.CPU > 0 {
		waited = u.Waited.Seconds() / u.CPU.Seconds()
	}
	took := s.took()
	if took > 0 {
		ofOps = u.Waited.Seconds() / took.Seconds()
		if part = fmt.Sprintf("that is %.1f %% of the time that operations took",
			100*ofOps); ofOps > 1 { // it waited between them
			part = fmt.Sprintf("that is more than all operations took together, %.3g s", took.Seconds())
		}
	}
	// In seconds: what waits for others' sake waits many times as long as it runs.
	evidence = fmt.Sprintf("this process used %.0f %% of its %d CPUs; its threads ran for %.3g s, and waited %.3g "+
		"s for a CPU: %s",
		100*u.Busy(), u.CPUs, u.CPU.Seconds(), u.Waited.Seconds(), part)
	share := 0.0
	if s.Ceiling > 0 {
		share = s.PerSecond() / s.Ceiling
		evidence = fmt.Sprintf("at %.0f %% of this client's own ceiling of %.0f operations a second; %s", 100*share,
			s.Ceiling, evidence)
	}
	closed := len(s.Works) > 0
	for i := range s.Works {
		closed = closed && s.Works[i].Work.Rate == nil
	}
	switch {
	case share >= ceilingShare, u.Busy() > busyShare, waited > waitedShare && ofOps > waitedOfOps && u.Wanted() > leastWanted:
		return ClientBound, evidence
	case closed && took > 0 && u.Wall > 0 && u.Wanted() <= busyShare:
		return ServerBound, evidence
	}
	return Unclear, evidence
}

// assessable is the least length of a stage that is assessed: the CPU time of a shorter one is too coarse.
const assessable = time.Second

// Limit judges a stage; false: it was too short, or no operation ended in it.
func (s *StageResult) Limit() (metric.Limit, bool) {
	d, n, known := s.CPUPerOp()
	if !known || s.Usage.Wall <= assessable {
		return metric.Limit{}, false
	}
	b, evidence := s.Bound()
	return metric.Limit{Stage: s.Name, Bound: string(b), Evidence: evidence, CPUPerOpNs: int64(d), Ops: n}, true
}

// unsent are failures before a request was sent.
var unsent = []httpconn.Kind{httpconn.Unresolved, httpconn.Refused, httpconn.Unreachable, httpconn.NoConnection,
	httpconn.ProxyRefused, httpconn.TLSUntrusted, httpconn.TLSName, httpconn.TLSExpired, httpconn.TLSFailed,
	httpconn.WrongScheme}

// MayHaveDone reports whether an operation with that label may have changed the store: not if no request was sent, or
// the store refused it. Without a response, or after a server error, it may have.
func MayHaveDone(label string) bool {
	refused := len(label) >= 3 && label[0] == '4' && (len(label) == 3 || label[3] == ' ')
	return !refused && label != Dropped && !slices.Contains(unsent, httpconn.Kind(label))
}

// MadeContainers reports whether the works of type init of a stage may have made any.
func (s *StageResult) MadeContainers(kinds model.Kinds) bool {
	for i := range s.Hosts {
		if s.Hosts[i].Lost != nil { // unknown
			return true
		}
	}
	for i := range s.Works {
		w := &s.Works[i]
		if w.Work.Kind != model.Init || kinds(w.Work.Store.Kind).Transient {
			continue
		}
		for k := range w.Cells {
			if k.Whole() && MayHaveDone(k.Label) {
				return true
			}
		}
	}
	return false
}

// took is the time of service of all operations together.
func (s *StageResult) took() (sum time.Duration) {
	for i := range s.Works {
		for k, c := range s.Works[i].Cells {
			if k.Whole() {
				sum += time.Duration(c.Service.Sum())
			}
		}
	}
	return sum
}

// PerSecond are the operations that were OK, of all works in their windows.
func (s *StageResult) PerSecond() (sum float64) {
	for i := range s.Works {
		w, n := &s.Works[i], int64(0)
		for k, c := range w.Cells {
			if k.OK && !k.Ramp && k.Whole() {
				n += c.N
			}
		}
		sum += perSecond(float64(n), time.Duration(w.To-w.From))
	}
	return sum
}

// CPUPerOp is what one operation cost this process, or all hosts together, of all
// that ended in the stage, ramps too; false if that is not known. What a process
// used that was lost it took with it, so that its operations do not count either.
func (s *StageResult) CPUPerOp() (d time.Duration, ops int64, ok bool) {
	var cpu time.Duration
	if cpu, ops = s.cpuOfOps(); ops == 0 {
		return 0, 0, false
	}
	return cpu / time.Duration(ops), ops, true
}

func (s *StageResult) cpuOfOps() (cpu time.Duration, ops int64) {
	for i := range s.Hosts {
		d, n := s.Hosts[i].cpuOfOps()
		cpu, ops = cpu+d, ops+n
	}
	if len(s.Hosts) > 0 || s.Usage.Wall == 0 {
		return cpu, ops
	}
	for i := range s.Works {
		for k, c := range s.Works[i].Cells {
			if k.Label != Dropped && k.Whole() {
				ops += c.N
			}
		}
	}
	return s.Usage.CPU, ops
}
