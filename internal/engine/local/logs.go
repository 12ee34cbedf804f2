package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

var _ engine.LogReader = (*Engine)(nil)

// maxTruthLine bounds a line of a built-in driver's truth log.
const maxTruthLine = 64 << 10

// ReadLogs passes what the built-in drivers recorded of their calls; their other output is in the run's log already.
// The output of an external driver belongs to who started it.
func (e *Engine) ReadLogs(ctx context.Context, windows []engine.LogWindow,
	keep func(at op.Time, source, line string)) (notes []string) {
	for _, name := range slices.Sorted(maps.Keys(e.drivers)) {
		d := e.drivers[name]
		if d.backend == "" {
			notes = append(notes, fmt.Sprintf("the log of %s cannot be read: cnsbench did not start it", d.title()))
			continue
		}
		if err := d.readTruthLog(ctx, windows, keep); err != nil {
			notes = append(notes, fmt.Sprintf("the log of %s was not read to its end: %v", d.title(), err))
		}
	}
	return notes
}

// readTruthLog passes the records that were written in a window.
func (d *driver) readTruthLog(ctx context.Context, windows []engine.LogWindow,
	keep func(at op.Time, source, line string)) error {
	f, err := os.Open(d.truthLog())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it ended before its first record
	}
	if err != nil {
		return err
	}
	defer f.Close()
	start := d.engine.session.Clock.Start().UnixNano()
	for line, err := range bounded.Lines(f, maxTruthLine) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		var r struct {
			Start int64 `json:"start_unix_ns"`
			End   int64 `json:"end_unix_ns"`
		}
		if json.Unmarshal(line.Text, &r) != nil {
			continue // the last record of a driver that was killed
		}
		at := op.Time(max(r.Start, r.End) - start)
		if slices.ContainsFunc(windows, func(w engine.LogWindow) bool { return w.From <= at && at <= w.To }) {
			keep(at, "driver "+d.name+" calls", line.String())
		}
	}
	return nil
}
