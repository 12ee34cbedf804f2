package bundle

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The records of which a bundle has the most are decoded without reflection where they are written as Writer writes
// them, and by package json otherwise.

// parseSeries decodes a series. Its points are nearly all of it.
func parseSeries(line []byte, s *Series) error {
	head, points, found := bytes.Cut(line, []byte(`"points":[`))
	if found {
		if list, ok := parsePoints(points); ok {
			err := json.Unmarshal(append(bytes.Clone(head), `"points":[]}`...), s)
			s.Points = list
			return err
		}
	}
	return json.Unmarshal(line, s)
}

// parsePoints decodes a list of at least one point, without its opening bracket.
func parsePoints(b []byte) (list []metric.Point, ok bool) {
	t := text{b: b}
	list = make([]metric.Point, 0, bytes.Count(b, []byte(`{`)))
	for more := true; more && !t.bad; more = t.next(`,`) {
		t.must(`{"at":`)
		p := metric.Point{At: op.Time(t.int())}
		t.must(`,"value":`)
		p.Value = t.float()
		t.must(`}`)
		list = append(list, p)
	}
	t.must(`]}`)
	return list, t.end()
}

// newSampleParser returns a decoder of samples, which is not safe for concurrent use.
func newSampleParser() func(line []byte, s *op.Sample) error {
	var names, levels interned
	return func(line []byte, s *op.Sample) error {
		if x, ok := parseSample(text{b: line}, &names, &levels); ok {
			*s = x
			return nil
		}
		return json.Unmarshal(line, s)
	}
}

// parseSample decodes a sample without details.
func parseSample(t text, names, levels *interned) (x op.Sample, ok bool) {
	t.must(`{"instance":`)
	x.Instance = t.string(names)
	x.At = op.Time(t.field(`,"at":`))
	x.ReadBytes = t.field(`,"readBytes":`)
	x.WriteBytes = t.field(`,"writeBytes":`)
	x.ReadOps = t.field(`,"readOps":`)
	x.WriteOps = t.field(`,"writeOps":`)
	x.CPUNanos = t.field(`,"cpuNanos":`)
	x.RSSBytes = t.field(`,"rssBytes":`)
	if t.next(`,"level":`) {
		x.Level = op.SampleLevel(t.string(levels))
	}
	if t.next(`,"samplerNanos":`) {
		x.SamplerNanos = t.int()
	}
	if t.next(`,"uncounted":`) {
		x.Uncounted = op.Unobserved(t.string(levels))
	}
	t.must(`}`)
	return x, t.end()
}

// text is what remains of a JSON text. It is bad once it was not as expected.
type text struct {
	b   []byte
	bad bool
}

// next skips a prefix; false: it is not there.
func (t *text) next(prefix string) bool {
	if len(t.b) < len(prefix) || string(t.b[:len(prefix)]) != prefix {
		return false
	}
	t.b = t.b[len(prefix):]
	return true
}

func (t *text) must(prefix string) { t.bad = !t.next(prefix) || t.bad }

// end reports whether all was as expected, up to the end of the line.
func (t *text) end() bool { return !t.bad && len(bytes.TrimRight(t.b, " \t\r\n")) == 0 }

// field takes an integer after a prefix.
func (t *text) field(prefix string) int64 {
	t.must(prefix)
	return t.int()
}

// string takes a string without escapes of printable ASCII.
func (t *text) string(known *interned) string {
	t.must(`"`)
	n := 0
	for n < len(t.b) && t.b[n] >= ' ' && t.b[n] <= '~' && t.b[n] != '"' && t.b[n] != '\\' {
		n++
	}
	s := known.of(t.b[:n])
	t.b = t.b[n:]
	t.must(`"`)
	return s
}

// int takes an integer of at most 18 digits.
func (t *text) int() int64 {
	negative := t.next("-")
	b, n, v := t.b, 0, int64(0)
	for n < len(b) && isDigit(b[n]) {
		v = 10*v + int64(b[n]-'0')
		n++
	}
	t.bad = t.bad || n == 0 || n > 18 || n > 1 && b[0] == '0'
	t.b = b[n:]
	if negative {
		return -v
	}
	return v
}

// float takes a number.
func (t *text) float() float64 {
	if v, n := shortNumber(t.b); n > 0 {
		t.b = t.b[n:]
		return v
	}
	n := numberLength(t.b)
	v, err := strconv.ParseFloat(string(t.b[:n]), 64)
	t.bad = t.bad || err != nil
	t.b = t.b[n:]
	return v
}

// shortNumber decodes a number of at most 15 characters without sign and exponent, and returns its length; 0: it is
// another. It is exact as an integer, and divided by a power of ten correctly rounded.
func shortNumber(b []byte) (v float64, length int) {
	var digits uint64
	n, point := 0, -1
	for ; n < len(b); n++ {
		if isDigit(b[n]) {
			digits = 10*digits + uint64(b[n]-'0')
		} else if b[n] == '.' && point < 0 {
			point = n
		} else {
			break
		}
	}
	whole, decimals := n, 0
	if point >= 0 {
		whole, decimals = point, n-point-1
	}
	if n > 15 || whole == 0 || whole > 1 && b[0] == '0' || point >= 0 && decimals == 0 ||
		n < len(b) && (b[n] == 'e' || b[n] == 'E') {
		return 0, 0
	}
	return float64(digits) / powersOfTen[decimals], n
}

var powersOfTen = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// numberLength is the length of the JSON number at the begin of b; 0: there is none.
func numberLength(b []byte) int {
	n := 0
	digits := func() bool {
		from := n
		for n < len(b) && isDigit(b[n]) {
			n++
		}
		return n > from
	}
	has := func(chars string) bool {
		if n < len(b) && strings.IndexByte(chars, b[n]) >= 0 {
			n++
			return true
		}
		return false
	}
	has("-")
	first := n
	if !digits() || b[first] == '0' && n > first+1 {
		return 0
	}
	if has(".") && !digits() {
		return 0
	}
	if has("eE") {
		if has("+-"); !digits() {
			return 0
		}
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
