package parser

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/op"
)

// pgIntervalRow parses a row of a log that pgbench --aggregate-interval wrote, the transactions of one interval:
// "interval_start num_transactions sum_latency sum_latency_2 min_latency max_latency", and since pgbench 15 "sum_lag
// sum_lag_2 min_lag max_lag skipped retried retries serialization_failures deadlock_failures". Its first number is a
// Unix time in seconds; that of a row of single transactions is the number of a client.
func pgIntervalRow(row []byte) (start, n int64, ok bool) {
	f := bytes.Fields(row)
	if len(f) < 6 {
		return 0, 0, false
	}
	start, err1 := strconv.ParseInt(string(f[0]), 10, 64)
	n, err2 := strconv.ParseInt(string(f[1]), 10, 64)
	return start, n, err1 == nil && err2 == nil && start >= 1e9 && start < maxPgNumber && n >= 0
}

// aggregated reads logs of --aggregate-interval; false: they are of single transactions. There are rates of the
// intervals, but no latencies: the rows have only sums and extremes. The first and the last interval are not whole.
func (p *pgbench) aggregated() (bool, error) {
	counts, first, last, step := map[int64]int64{}, int64(maxPgNumber), int64(0), int64(maxCells)
	for _, name := range p.logs {
		text, err := bounded.ReadFile(p.in.Files, name, maxPgReport)
		if errors.Is(err, bounded.ErrTooLarge) {
			return false, nil // the log of single transactions is
		}
		if err != nil {
			return false, err
		}
		before := int64(0)
		for row := range bytes.Lines(text) {
			start, n, ok := pgIntervalRow(row)
			switch {
			case !bytes.HasSuffix(row, []byte("\n")):
			case !ok && len(counts) == 0:
				return false, nil
			case !ok:
				p.warn("outputUnread", "%s has a line that is no interval: %s", name, bounded.Text(string(bytes.TrimSpace(row)),
					80))
			default:
				if before > 0 && start > before {
					step = min(step, start-before)
				}
				before, first, last = start, min(first, start), max(last, start)
				counts[start] += n
			}
		}
	}
	if len(counts) == 0 {
		return false, nil
	}
	p.warn("pgbenchAggregated", "the log has intervals (--aggregate-interval): there is no distribution of latencies")
	if last-first >= maxCells {
		return true, fmt.Errorf("the intervals of the log are not within %v", maxCells*time.Second)
	}
	for at := first + step; at < last; at += step {
		p.interval(pgTPS, op.Time(step)*aSecond, p.in.clock(at*int64(time.Second)), op.Time(step)*aSecond,
			float64(counts[at])/float64(step))
	}
	return true, nil
}
