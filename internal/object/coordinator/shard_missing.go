package coordinator

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Missing accounts for the share of a lost shard: for each work that it did not end, what it had to do, which part is
// known and which is not. Operations of an open loop that were due after the last known one are added to the work as
// lost.
func (p *Shard) Missing() (list []string) {
	for i := range p.Stages {
		s := &p.Stages[i]
		if s.Over {
			continue
		}
		for _, m := range s.missing(&p.Workload.Stages[i], false, p.Seed) {
			list = append(list, fmt.Sprintf("stage %s, %s", s.Name, m))
		}
	}
	return list
}

// Shift moves all instants of the shard by d.
func (p *Shard) Shift(d op.Time) {
	move := func(list ...*op.Time) {
		for _, t := range list {
			if t.Known() {
				*t += d
			}
		}
	}
	move(&p.Barrier, &p.Last)
	for i := range p.Stages {
		s := &p.Stages[i]
		move(&s.Began, &s.Ended)
		for j := range s.Works {
			move(&s.Works[j].Began, &s.Works[j].From, &s.Works[j].To, &s.Works[j].Ended)
		}
		for j := range s.Outages {
			move(&s.Outages[j].From, &s.Outages[j].To)
		}
		for j := range s.Seconds {
			move(&s.Seconds[j].From, &s.Seconds[j].To)
		}
	}
}
