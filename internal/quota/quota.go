// Package quota bounds the output of workloads, at its source and where it is stored. It is pure arithmetic.
package quota

import "sync"

// Names of a program's standard output and standard error.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// logFraction is the part of a Quota (1/4) that stdout may take, and stderr another: at least half remains
// for files with measurements.
const logFraction = 4

// Quota is a number of bytes for the files of one source. The zero value has no bound. It is safe for
// concurrent use.
type Quota struct {
	limit int64

	mu   sync.Mutex
	used int64
	logs map[string]int64 // of used, by stdout and stderr
}

// New returns a Quota of limit bytes; 0 or less: no bound.
func New(limit int64) *Quota {
	return &Quota{limit: max(0, limit), logs: map[string]int64{}}
}

// Take takes n bytes of a file and returns how many are accepted. Once that is less than n, no further bytes
// of the file are.
func (q *Quota) Take(file string, n int) int {
	if q.limit == 0 {
		return n
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	room := q.limit - q.used
	isLog := file == Stdout || file == Stderr
	if isLog {
		room = min(room, q.limit/logFraction-q.logs[file])
	}
	n = int(min(int64(n), max(0, room)))
	q.used += int64(n)
	if isLog {
		q.logs[file] += int64(n)
	}
	return n
}
