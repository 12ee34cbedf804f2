package parser

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Limits of the warnings that a script prints: their number, and the bytes of one.
const maxSaid, maxWarning = 10, 500

// maxName is how long the name of a metric may be, in bytes.
const maxName = 200

// ErrNoMetric is returned for output without metrics.
var ErrNoMetric = errors.New("no metric in the output of the parser: see docs/format/parser.md")

// Printed reads the output of a parser script (docs/format/parser.md). in.Files is not
// used. Lines that are not metrics are left out with a warning; without any metric the
// error is ErrNoMetric.
func Printed(in Input, text []byte) (Result, error) {
	p := &scriptOutput{in: in, scalars: map[string]metric.Scalar{}, series: map[line]*metric.Series{}}
	text = bytes.TrimSpace(text)
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		p.json(text)
	} else {
		p.table(string(text))
	}
	return p.result()
}

// scriptOutput has the metrics of one output.
type scriptOutput struct {
	in         Input
	scalars    map[string]metric.Scalar
	series     map[line]*metric.Series
	lists      []string // names of the lists that were left out
	duplicates []string
	said       []string // its warnings
	rejected   int
	first      string // of the bad
}

// line identifies a series.
type line struct {
	metric, unit string
	traits       metric.Traits
	step         int64
}

// value is one metric of the output, as a JSON object has it.
type value struct {
	Metric string   `json:"metric"`
	Value  *float64 `json:"value"`
	Unit   string   `json:"unit"`
	metric.Traits
	Time    *float64 `json:"time"`    // s since the Unix epoch
	Elapsed *float64 `json:"elapsed"` // s since the container began
	Step    float64  `json:"step"`    // s
}

// json reads a stream or a list of objects: metrics, or documents with numbers.
func (p *scriptOutput) json(text []byte) {
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			p.reject(fmt.Sprintf("at byte %d: %v", d.InputOffset(), err))
			return
		}
		var list []json.RawMessage
		if raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
			list = []json.RawMessage{raw}
		}
		for _, o := range list {
			p.object(o)
		}
	}
}

func (p *scriptOutput) object(raw json.RawMessage) {
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		p.reject(string(raw))
		return
	}
	if text, ok := members["warning"].(string); ok && len(members) == 1 {
		p.said = append(p.said, oneLine(text))
		return
	}
	if _, ok := members["metric"]; !ok {
		p.document("", members)
		return
	}
	var m value
	if err := json.Unmarshal(raw, &m); err != nil || m.Value == nil || m.Time != nil && m.Elapsed != nil {
		p.reject(string(raw))
		return
	}
	p.add(m, string(raw))
}

// add adds one metric; text is its source.
func (p *scriptOutput) add(m value, text string) {
	m.Kind = cmp.Or(m.Kind, metric.KindOf(m.Unit))
	switch {
	case !validName(m.Metric) || !finite(*m.Value) || !validTraits(m.Traits):
		p.reject(text)
	case m.Time == nil && m.Elapsed == nil:
		if _, ok := p.scalars[m.Metric]; ok {
			p.duplicates = append(p.duplicates, m.Metric)
		}
		p.scalars[m.Metric] = metric.Scalar{Metric: m.Metric, Unit: m.Unit, Traits: m.Traits, Value: *m.Value}
	default:
		at, ok := p.at(m)
		if !ok || !finite(m.Step) || m.Step < 0 || m.Step > maxSeconds {
			p.reject(text)
			return
		}
		key := line{m.Metric, m.Unit, m.Traits, int64(m.Step * float64(time.Second))}
		if p.series[key] == nil {
			p.series[key] = &metric.Series{Metric: key.metric, Unit: key.unit, Traits: key.traits, Step: key.step}
		}
		p.series[key].Points = append(p.series[key].Points, metric.Point{At: at, Value: *m.Value})
	}
}

// maxSeconds is the greatest accepted time; in ns it fits an int64.
const maxSeconds = 9e9

// at converts a point's time to the run's clock; false if that is impossible.
func (p *scriptOutput) at(m value) (op.Time, bool) {
	if m.Time != nil {
		if math.Abs(*m.Time) > maxSeconds || p.in.AtWall == nil {
			return 0, false
		}
		whole, part := math.Modf(*m.Time) // separately: a float64 cannot hold the ns of a Unix time
		return p.in.AtWall(int64(whole)*int64(time.Second) + int64(part*float64(time.Second))), true
	}
	if math.Abs(*m.Elapsed) > maxSeconds || !p.in.Started.Known() {
		return 0, false
	}
	return p.in.Started + op.Time(*m.Elapsed*float64(time.Second)), true
}

// document adds the numbers of an object, also those in strings, as metrics named by path.
func (p *scriptOutput) document(path string, members map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(members)) {
		name := strings.TrimPrefix(path+"."+key, ".")
		switch v := members[key].(type) {
		case float64:
			p.add(value{Metric: name, Value: &v}, name)
		case string:
			if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
				p.add(value{Metric: name, Value: &f}, name)
			}
		case map[string]any:
			p.document(name, v)
		case []any:
			p.lists = append(p.lists, name)
		}
	}
}

// table reads lines name,value[,unit]. Empty lines, those that begin with # and a header
// are skipped.
func (p *scriptOutput) table(text string) {
	for i, row := range strings.Split(text, "\n") {
		row = strings.TrimSpace(row)
		f := strings.Split(row, ",")
		for j := range f {
			f[j] = strings.TrimSpace(f[j])
		}
		if row == "" || row[0] == '#' || i == 0 && len(f) > 1 && f[0] == "name" && f[1] == "value" {
			continue
		}
		if len(f) < 2 || len(f) > 3 {
			p.reject(row)
			continue
		}
		v, err := strconv.ParseFloat(f[1], 64)
		if err != nil {
			p.reject(row)
			continue
		}
		m := value{Metric: f[0], Value: &v}
		if len(f) == 3 {
			m.Unit = f[2]
		}
		p.add(m, row)
	}
}

func validName(name string) bool {
	return name != "" && len(name) <= maxName && strings.IndexFunc(name, unicode.IsControl) < 0
}

// validTraits reports whether a metric has known traits of a scalar or series.
func validTraits(t metric.Traits) bool {
	return slices.Contains(metric.ScalarKinds, t.Kind) &&
		slices.Contains([]metric.Direction{"", metric.Higher, metric.Lower}, t.Better)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// reject counts invalid metrics and keeps the first.
func (p *scriptOutput) reject(text string) {
	if p.rejected++; p.rejected == 1 {
		p.first = text[:min(len(text), 120)]
	}
}

func (p *scriptOutput) result() (Result, error) {
	var r Result
	for _, name := range slices.Sorted(maps.Keys(p.scalars)) {
		r.Scalars = append(r.Scalars, p.scalars[name])
	}
	for _, s := range p.series {
		slices.SortStableFunc(s.Points, func(a, b metric.Point) int { return cmp.Compare(a.At, b.At) })
		r.Series = append(r.Series, *s)
	}
	slices.SortFunc(r.Series, func(a, b metric.Series) int {
		return cmp.Or(cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Step, b.Step))
	})
	warn := func(code, format string, args ...any) {
		r.Warnings = append(r.Warnings, Warning{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	for _, text := range p.said[:min(len(p.said), maxSaid)] {
		warn("parserWarning", "%s", text)
	}
	if p.rejected > 0 {
		warn("outputUnread", "the parser printed %d invalid metrics, first %q", p.rejected, p.first)
	}
	if len(p.lists) > 0 {
		warn("outputUnread", "the parser printed lists, which are not metrics: %s", firstNames(p.lists))
	}
	if len(p.duplicates) > 0 {
		warn("outputUnread", "the parser printed metrics repeatedly, of which the last is kept: %s",
			firstNames(p.duplicates))
	}
	if len(r.Scalars)+len(r.Series) == 0 {
		return r, ErrNoMetric
	}
	return r, nil
}

// oneLine is a text of a script as a message.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxWarning {
		text = strings.ToValidUTF8(text[:maxWarning], "") + "…"
	}
	return text
}

// firstNames joins the first few names.
func firstNames(names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	if n := len(names); n > 5 {
		return strings.Join(names[:5], ", ") + fmt.Sprintf(" and %d more", n-5)
	}
	return strings.Join(names, ", ")
}
