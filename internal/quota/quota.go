// Package quota bounds what workloads write, at its source and again where it is
// kept. It is arithmetic alone.
package quota

import "sync"

// Names of the two files that a program writes by being run.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// logShare is the part of a Quota that stdout may take, and stderr another: at
// least half is left for the files that measurements are in.
const logShare = 4

// Quota is a number of bytes for the files of one source. The zero value has no
// bound. It is safe for concurrent use.
type Quota struct {
	limit int64

	mu   sync.Mutex
	used int64
	logs map[string]int64 // of used, by stdout and stderr
}

// New is a Quota of so many bytes; 0 or less: without a bound.
func New(limit int64) *Quota {
	return &Quota{limit: max(0, limit), logs: map[string]int64{}}
}

// Take takes n bytes of a file and returns how many of them there is room for.
// Once that is fewer than n, there is no room for more of that file.
func (q *Quota) Take(file string, n int) int {
	if q.limit == 0 {
		return n
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	room := q.limit - q.used
	isLog := file == Stdout || file == Stderr
	if isLog {
		room = min(room, q.limit/logShare-q.logs[file])
	}
	n = int(min(int64(n), max(0, room)))
	q.used += int64(n)
	if isLog {
		q.logs[file] += int64(n)
	}
	return n
}
