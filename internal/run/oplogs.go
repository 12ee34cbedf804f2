package run

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/oplog"
	"github.com/cnsbench/cnsbench/internal/quota"
	"github.com/cnsbench/cnsbench/internal/redact"
)

// OpLogs is where the log lines around slow and failed ops come from and go to: a *bundle.Writer.
type OpLogs interface {
	// EndedOps yields the ops recorded so far, as far as package oplog needs them; Logged the lines of the run's log.
	EndedOps() iter.Seq2[op.Op, error]
	Logged() iter.Seq2[bundle.LogLine, error]
	OpLogs(about oplog.About, records []oplog.Record)
}

// maxFull bounds how many sources are named whose log reached its limit.
const maxFull = 20

// logsLimit bounds the time in which logs are read.
const logsLimit = time.Minute

// collectLogs keeps the log lines around slow and failed ops. It runs once the ops and the workloads have ended, so
// that reading logs disturbs no measurement; the objects of the run still exist. A second interrupt skips it.
func (r *runner) collectLogs(ctx context.Context) {
	if r.OpLogs == nil || r.hard.Err() != nil {
		return
	}
	selected, err := oplog.Select(r.OpLogs.EndedOps())
	if err != nil {
		r.log("run", fmt.Sprintf("no log lines are kept for single ops: %v", err))
		return
	}
	if len(selected.Records) == 0 {
		return
	}
	c := selected.Collect(redact.NewLines(r.Secrets...))
	notes := r.ownLog(c)
	if reader, ok := r.Engine.(engine.LogReader); ok {
		ctx, cancel := context.WithTimeout(ctx, logsLimit)
		defer cancel()
		defer context.AfterFunc(r.hard, cancel)()
		var windows []engine.LogWindow
		for _, w := range selected.Windows() {
			windows = append(windows, engine.LogWindow(w))
		}
		notes = append(notes, reader.ReadLogs(ctx, windows, c.Add)...)
	}
	for _, n := range notes {
		r.Record.Log(r.Clock.Now(), "engine", n)
	}
	selected.About.Notes = notes
	r.OpLogs.OpLogs(selected.About, c.Records())
}

// ownLog adds the lines of log.jsonl: of drivers, workloads and the engine. The run's own lines say nothing about
// the platform.
func (r *runner) ownLog(c *oplog.Collector) (notes []string) {
	full := map[string]bool{}
	for l, err := range r.OpLogs.Logged() {
		if err != nil {
			return append(notes, fmt.Sprintf("the lines of log.jsonl are missing around single ops: %v", err))
		}
		if l.Source == "run" {
			continue
		}
		if strings.HasSuffix(l.Line, quota.LimitReached) && !full[l.Source] && len(full) < maxFull {
			full[l.Source] = true
			notes = append(notes, fmt.Sprintf("%s: its log reached its limit at %.2f s: later lines are missing",
				l.Source, float64(l.At)/1e9))
		}
		c.Add(l.At, l.Source, l.Line)
	}
	return notes
}
