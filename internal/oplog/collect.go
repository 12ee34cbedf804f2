package oplog

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/redact"
)

// Collector assigns lines to the windows of selected ops. Of a window that has more than fits, the sources with few
// lines are kept whole, and of the others the lines that name an object of the op, then those nearest to the op in
// time. It is safe for concurrent use.
type Collector struct {
	redact *redact.Lines

	mu   sync.Mutex
	ops  []*window                 // in order of From
	keys map[string]*redact.Source // by source
}

// window has the lines of one op.
type window struct {
	record  *Record
	bytes   int
	sources map[string]*kept
}

// kept has the lines of one source in one window.
type kept struct {
	lines   []Line
	bytes   int
	omitted Omission
}

// Collect returns a Collector for the selected ops. Lines pass through without.
func (s *Selection) Collect(without *redact.Lines) *Collector {
	c := &Collector{redact: without, keys: map[string]*redact.Source{}}
	for i := range s.Records {
		c.ops = append(c.ops, &window{record: &s.Records[i], sources: map[string]*kept{}})
	}
	return c
}

// Add adds a line to each window that it is in. Lines of one source come in order of time.
func (c *Collector) Add(at op.Time, source, line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var l Line
	for _, w := range c.ops {
		if w.record.From > at {
			break
		}
		if at > w.record.To {
			continue
		}
		if l.Source == "" {
			l = c.clean(at, source, line)
		}
		w.add(l)
	}
}

// clean bounds a line and removes secrets.
func (c *Collector) clean(at op.Time, source, line string) Line {
	source = strings.ToValidUTF8(bounded.Text(source, maxSource), "\uFFFD")
	k := c.keys[source]
	if k == nil {
		k = &redact.Source{}
		c.keys[source] = k
	}
	line = strings.TrimRight(line[:min(len(line), maxRaw)], "\r\n")
	return Line{At: at, Source: source, Line: strings.ToValidUTF8(bounded.Text(c.redact.Line(k, line), maxLine), "\uFFFD")}
}

func (l *Line) size() int { return len(l.Line) + lineOverhead }

// add adds a line, and omits lines that have no room any more.
func (w *window) add(l Line) {
	k := w.sources[l.Source]
	if k == nil {
		k = &kept{omitted: Omission{Source: l.Source}}
		w.sources[l.Source] = k
	}
	l.Named = slices.ContainsFunc(w.record.names, func(name string) bool { return hasName(l.Line, name) })
	k.lines = append(k.lines, l)
	k.bytes += l.size()
	w.bytes += l.size()
	for w.bytes > maxPerOp {
		w.omit(w.largest())
	}
}

// hasName reports whether a line has a name, also as the begin of a longer one: fio-1 in fio-1-data, not in fio-10.
func hasName(line, name string) bool {
	if len(name) < shortestName {
		return false
	}
	for {
		at := strings.Index(line, name)
		if at < 0 {
			return false
		}
		before, after := byte(' '), byte(' ')
		if at > 0 {
			before = line[at-1]
		}
		if line = line[at+len(name):]; line != "" {
			after = line[0]
		}
		if !alphanumeric(before) && !alphanumeric(after) {
			return true
		}
	}
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// omit drops the line of a source that matters least.
func (w *window) omit(k *kept) {
	worst := 0
	for i := range k.lines {
		if w.distance(&k.lines[i]) > w.distance(&k.lines[worst]) {
			worst = i
		}
	}
	l := k.lines[worst]
	k.lines = slices.Delete(k.lines, worst, worst+1)
	k.bytes -= l.size()
	w.bytes -= l.size()
	k.omitted.Lines++
	k.omitted.Bytes += int64(len(l.Line))
}

// distance is how far from the op a line was written; -1 for one that names an object of the op.
func (w *window) distance(l *Line) op.Time {
	if l.Named {
		return -1
	}
	return max(0, w.record.From+op.Time(Margin)-l.At, l.At-w.record.To+op.Time(Margin))
}

// largest returns the source that has the most, which has a line.
func (w *window) largest() *kept {
	return slices.MaxFunc(slices.Collect(maps.Values(w.sources)), func(a, b *kept) int {
		return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.omitted.Source, b.omitted.Source))
	})
}

// Records returns the selected ops with their lines, in order of their windows. No lines may be added later.
func (c *Collector) Records() []Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []Record
	for _, w := range c.ops {
		r := *w.record
		r.Lines = []Line{}
		for _, source := range slices.Sorted(maps.Keys(w.sources)) {
			k := w.sources[source]
			r.Lines = append(r.Lines, k.lines...)
			if k.omitted.Lines > 0 {
				r.Omitted = append(r.Omitted, k.omitted)
			}
		}
		slices.SortStableFunc(r.Lines, func(a, b Line) int { return cmp.Compare(a.At, b.At) })
		list = append(list, r)
	}
	return list
}
