package quota

// Limits of log lines in bytes, including the overhead per line.
const (
	// OneSource is the limit for one source.
	OneSource = 1 << 20
	// AllSources is the limit for a run.
	AllSources = 64 << 20

	lineOverhead = 64
)

// LimitReached ends the line that takes the place of a source's further lines.
const LimitReached = "not logged: limit of 1 MiB reached"

// Lines bounds log lines. It is not safe for concurrent use.
type Lines struct {
	left int64
	full bool
}

// NewLines returns Lines for a number of bytes.
func NewLines(room int64) *Lines { return &Lines{left: room} }

// Full reports whether no further line is accepted.
func (l *Lines) Full() bool { return l.full }

// Take reports whether a line is accepted; last marks the first line that is not.
func (l *Lines) Take(line string) (ok, last bool) {
	if l.full {
		return false, false
	}
	cost := int64(len(line)) + lineOverhead
	if cost > l.left {
		l.full = true
		return false, true
	}
	l.left -= cost
	return true, false
}
