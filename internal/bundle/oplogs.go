package bundle

import (
	"iter"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/oplog"
)

// opLogLine is one line of logs/ops.jsonl.
type opLogLine struct {
	About *oplog.About  `json:"about,omitempty"`
	Op    *oplog.Record `json:"op,omitempty"`
}

// OpLogs are the log lines around slow and failed ops.
type OpLogs struct {
	About oplog.About
	Ops   []oplog.Record
	// Collected is false if no lines were collected: the run was killed, or an earlier version made the bundle.
	Collected bool
}

// Of returns the lines around one op; false if it was not selected.
func (l *OpLogs) Of(id int64) (oplog.Record, bool) {
	for _, r := range l.Ops {
		if r.ID == id {
			return r, true
		}
	}
	return oplog.Record{}, false
}

// OpLogs records the log lines around the selected ops, once.
func (w *Writer) OpLogs(about oplog.About, records []oplog.Record) {
	w.line(opLogsFile, opLogLine{About: &about})
	for i := range records {
		w.line(opLogsFile, opLogLine{Op: &records[i]})
	}
}

// OpLogs returns the log lines around slow and failed ops. Package oplog bounds them.
func (b *Bundle) OpLogs() (OpLogs, error) {
	var l OpLogs
	for line, err := range lines[opLogLine](b, opLogsFile) {
		if err != nil {
			return OpLogs{}, err
		}
		if line.About != nil {
			l.About, l.Collected = *line.About, true
		}
		if line.Op != nil {
			l.Ops = append(l.Ops, *line.Op)
		}
	}
	return l, nil
}

// briefOp has the fields of an op that select it: the others take most of the time of decoding.
type briefOp struct {
	ID      int64      `json:"id"`
	Action  string     `json:"action"`
	Target  string     `json:"target"`
	Object  string     `json:"object"`
	Started *int64     `json:"started"`
	Ended   *int64     `json:"ended"`
	Outcome op.Outcome `json:"outcome"`
	Code    string     `json:"code"`
}

func (b *briefOp) op() op.Op {
	o := op.Op{ID: b.ID, Action: b.Action, Target: b.Target, Object: b.Object, Started: op.Never, Ended: op.Never,
		Outcome: b.Outcome, Code: b.Code}
	if b.Started != nil {
		o.Started = op.Time(*b.Started)
	}
	if b.Ended != nil {
		o.Ended = op.Time(*b.Ended)
	}
	return o
}

// EndedOps yields the ops recorded so far, in that order, each with its id, action, target, object, start, end,
// outcome and code only. No op may be recorded meanwhile.
func (w *Writer) EndedOps() iter.Seq2[op.Op, error] {
	return func(yield func(op.Op, error) bool) {
		err := w.Flush()
		var segments []string
		if err == nil {
			segments, err = listSegments(w.dir)
		}
		if err != nil {
			yield(op.Op{}, err)
			return
		}
		for b, err := range segmentOps[briefOp](bounded.Dir(w.dir), segments, nil) {
			if !yield(b.op(), err) {
				return
			}
		}
	}
}

// Logged yields the lines of log.jsonl so far. Lines that are recorded meanwhile may be missing.
func (w *Writer) Logged() iter.Seq2[LogLine, error] {
	return func(yield func(LogLine, error) bool) {
		b := &Bundle{Dir: w.dir, validLen: map[string]int64{}}
		err := w.Flush()
		if err == nil {
			err = b.checkStream(logFile, validLines)
		}
		if err != nil {
			yield(LogLine{}, err)
			return
		}
		for l, err := range b.Log() {
			if !yield(l, err) {
				return
			}
		}
	}
}
