package coordinator

import (
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// began, second and ended are what a host sends of its share of a stage, and what a shard writes into its file.
// Stage is the number of a shard's stage; hosts have one stage at a time, and leave it 0.

// began says that a stage's works began; for the first measured stage of shards that was at the barrier.
type began struct {
	Stage   int     `json:"stage"`
	At      op.Time `json:"at"`
	Barrier bool    `json:"barrier,omitempty"`
	// Works of the stage, where they are not those of the head: this shard has taken another's share over.
	Works []model.Work `json:"works,omitempty"`
}

// second is what ended in about a second of a work.
type second struct {
	Stage int           `json:"stage"`
	Work  string        `json:"work"`
	From  op.Time       `json:"from"`
	To    op.Time       `json:"to"`
	Cells loadgen.Cells `json:"cells"`
	Usage loadgen.Usage `json:"usage"` // of the process, since it began
}

// ended is the end of a stage.
type ended struct {
	Stage   int           `json:"stage"`
	At      op.Time       `json:"at"`
	Skipped bool          `json:"skipped,omitempty"`
	Err     string        `json:"err,omitempty"`
	Usage   loadgen.Usage `json:"usage"` // during the stage
	Works   []span        `json:"works,omitempty"`
	// Outages of endpoints in the stage.
	Outages       []metric.Outage `json:"outages,omitempty"`
	TokenRequests int64           `json:"tokenRequests,omitempty"`
}

// span is when a work was run and measured.
type span struct {
	Work  string  `json:"work"`
	Began op.Time `json:"began"`
	From  op.Time `json:"from"`
	To    op.Time `json:"to"`
	Ended op.Time `json:"ended"`
	Err   string  `json:"err,omitempty"`
	// Steady is that of loadgen.WorkResult.
	Steady *loadgen.Steadiness `json:"steady,omitempty"`
}

// valid reports whether the instants are in order.
func (w *span) valid() bool {
	return w.Began.Known() && w.From >= w.Began && w.To >= w.From && w.Ended >= w.Began
}

// secondOf reports a second of a work.
func secondOf(stage int, w *model.Work, from, to op.Time, cells loadgen.Cells) *second {
	return &second{Stage: stage, Work: w.Name, From: from, To: to, Cells: cells, Usage: loadgen.UsageNow()}
}

// endedOf reports a stage's result without its cells, which the seconds add up to.
func endedOf(stage int, r *loadgen.StageResult) *ended {
	e := &ended{Stage: stage, At: r.Ended, Err: text(r.Err), Usage: r.Usage,
		Outages: r.Outages, TokenRequests: r.TokenRequests}
	for i := range r.Works {
		w := &r.Works[i]
		e.Works = append(e.Works, span{Work: w.Work.Name, Began: w.Began, From: w.From, To: w.To, Ended: w.Ended,
			Err: text(w.Err), Steady: w.Steady})
	}
	return e
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
