package quota

// What lines for people may take of a log, each counted with what stands around it
// there.
const (
	// OneSource is for the lines of one source, in bytes.
	OneSource = 1 << 20
	// AllSources is for those of a run.
	AllSources = 64 << 20

	lineCost = 64
)

// Lines bounds lines for people. It is not safe for concurrent use.
type Lines struct {
	room int64
	full bool
}

// NewLines has room for so many bytes.
func NewLines(room int64) *Lines { return &Lines{room: room} }

// Full says whether no line is taken any more.
func (l *Lines) Full() bool { return l.full }

// Take says whether there is room for a line; last that this is the first for
// which there is none.
func (l *Lines) Take(line string) (ok, last bool) {
	if l.full {
		return false, false
	}
	cost := int64(len(line)) + lineCost
	if cost > l.room {
		l.full = true
		return false, true
	}
	l.room -= cost
	return true, false
}
