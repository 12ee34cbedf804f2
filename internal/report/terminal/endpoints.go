package terminal

import (
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
)

// maxEndpoints and maxOutages are the lengths of the tables; the report has all.
const (
	maxEndpoints = 64
	maxOutages   = 16
)

// endpoints shows each operation at each of several endpoints of object storage.
func (p *printer) endpoints(s *summary.Summary) {
	if len(s.Endpoints) == 0 {
		return
	}
	t := table{head: []string{"By endpoint", "endpoint", "verdict", "ok", "failed", "share", "per s", "p50", "p99"},
		left: map[int]bool{1: true, 2: true}}
	for i := range s.Endpoints[:min(len(s.Endpoints), maxEndpoints)] {
		e := &s.Endpoints[i]
		share := "–"
		if e.Share != nil {
			share = fmt.Sprintf("%.1f %%", 100**e.Share)
		}
		t.row(e.Action+" "+e.Operation, e.Endpoint, e.Verdict, fmt.Sprint(e.OK), fmt.Sprint(e.Errors), share,
			rate(e.PerSecond), short(e.Latency.P50), short(e.Latency.P99))
	}
	p.table(t)
	if more := len(s.Endpoints) - maxEndpoints; more > 0 {
		p.note(fmt.Sprintf("%d more lines are in the report", more))
	}
}

// outages shows when endpoints of object storage did not serve.
func (p *printer) outages(s *summary.Summary) {
	if len(s.Outages) == 0 {
		return
	}
	t := table{head: []string{"Outages", "endpoint", "from", "to", "lasted", "failed"}, left: map[int]bool{1: true}}
	for i := range s.Outages[:min(len(s.Outages), maxOutages)] {
		o := &s.Outages[i]
		who, end := o.Stage, seconds(int64(o.To))
		if o.Instance != "" {
			who = o.Instance + " " + o.Stage
		}
		if o.Open {
			end = "the end"
		}
		t.row(who, o.Endpoint, seconds(int64(o.From)), end, seconds(int64(o.To-o.From)), fmt.Sprint(o.Ops))
	}
	p.table(t)
	p.note("from, to: since the run began; failed: operations that were tried in that time")
	if more := len(s.Outages) - maxOutages; more > 0 {
		p.note(fmt.Sprintf("%d more are in the report", more))
	}
}

func seconds(ns int64) string { return fmt.Sprintf("%.1f s", time.Duration(ns).Seconds()) }
