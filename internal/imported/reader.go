package imported

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/observation"
)

// Limits of a file.
const (
	// MaxRows is the most rows of a file, times the columns of values. An import takes about 35 bytes of memory for each
	// row, a comparison 150 for each value.
	MaxRows = 20_000_000
	// MaxLevels is the most values of a factor, and the most metrics.
	MaxLevels = 1000
	maxLine   = 1 << 20
	maxText   = 64 << 30 // of a compressed file, decompressed
)

// row is one line of a file. Its slices are valid until the next.
type row struct {
	line            int
	levels          []string
	occasion, block string
	repetition      int32
	// values has one for each column of values. In a table of means it has one without a number: aggregate has those.
	values    []measured
	aggregate observation.Aggregate
	record    []string
}

// measured is a value of a metric.
type measured struct {
	metric  observation.Metric
	value   float64 // NaN: missing
	missing bool
}

// reader reads the rows of a CSV file in order. It keeps one in memory, and the names that it has seen.
type reader struct {
	csv     *csv.Reader
	bound   *bounded.Reader
	format  Format
	at      places
	header  []string
	metrics []observation.Metric // by column of values, unless a column has their names
	wide    bool                 // the columns of values were not named one by one
	rows    int
	row     row
	units   map[string]unitAt
	levels  []map[string]bool
	intern  map[string]string
	numbers map[string]int32 // of repetitions that are words
	words   bool
}

// unitAt is the unit of a metric and the line that has it first.
type unitAt struct {
	unit string
	line int
}

// newReader reads the header of a text without a byte order mark.
func newReader(from io.Reader, f Format) (*reader, error) {
	if err := f.Columns.check(); err != nil {
		return nil, err
	}
	comma := ','
	if f.Separator == `\t` { // as a shell passes it
		f.Separator = "\t"
	}
	if f.Separator != "" {
		r, size := utf8.DecodeRuneInString(f.Separator)
		if size != len(f.Separator) || strings.ContainsRune("\"\r\n\uFFFD", r) {
			return nil, fmt.Errorf("invalid separator %q: want one character, such as ;", f.Separator)
		}
		comma = r
	}
	bound := bounded.NewReader(from, bounded.Limits{Line: maxLine, CSV: true})
	buffered := bufio.NewReaderSize(bound, 1<<16)
	if begin, _ := buffered.Peek(512); !isText(begin) || bytes.HasPrefix(begin, []byte("\ufeff")) {
		return nil, errors.New("the file is not text: want a CSV file in UTF-8, or in UTF-16 with a byte order mark")
	}
	r := &reader{csv: csv.NewReader(buffered), bound: bound, format: f, wide: f.Columns.Wide, units: map[string]unitAt{},
		intern: map[string]string{}, numbers: map[string]int32{}}
	r.csv.Comma, r.csv.ReuseRecord = comma, true
	return r, r.readHeader()
}

// isText says whether the begin of a file has no control characters but those between cells and lines.
func isText(begin []byte) bool {
	return !bytes.ContainsFunc(begin, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1b", r) })
}

func (r *reader) readHeader() error {
	header, err := r.csv.Read()
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty: want a line with the names of the columns, then one line for each value")
	}
	if err != nil {
		return r.fault(header, err)
	}
	for _, h := range header {
		if !utf8.ValidString(h) {
			return errors.New("line 1: the names of the columns are not UTF-8 text; convert the file to UTF-8")
		}
		r.header = append(r.header, strings.TrimSpace(h))
	}
	if len(header) == 1 {
		for _, other := range []string{";", "\t", "|"} {
			if strings.Contains(header[0], other) && string(r.csv.Comma) != other {
				return fmt.Errorf("line 1 has one column, %q: if its columns are separated by %q, give --separator %q",
					header[0], other, other)
			}
		}
	}
	columns := &r.format.Columns
	if err := columns.widen(r.header); err != nil {
		return err
	}
	if r.at, err = columns.place(r.header); err != nil {
		return err
	}
	if r.metrics, err = columns.metrics(); err != nil {
		return err
	}
	r.row.values = make([]measured, len(r.metrics))
	r.levels = make([]map[string]bool, len(r.at.factors))
	for i := range r.levels {
		r.levels[i] = map[string]bool{}
	}
	return nil
}

// fault names the line of an error of the CSV syntax.
func (r *reader) fault(record []string, err error) error {
	if e := r.bound.Err(); e != nil {
		return e
	}
	var p *csv.ParseError
	if errors.As(err, &p) {
		if errors.Is(p.Err, csv.ErrFieldCount) {
			return fmt.Errorf("line %d: it has another number of cells than line 1, which has %d%s", p.Line, len(r.header),
				r.split(record))
		}
		return fmt.Errorf("line %d: %w", p.Line, p.Err)
	}
	return err
}

// split names what may have made too many cells: a decimal comma.
func (r *reader) split(record []string) string {
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	for i := len(record) - 1; i > 0 && len(record) > len(r.header) && r.csv.Comma == ','; i-- {
		whole, part := strings.TrimLeft(strings.TrimSpace(record[i-1]), "+-"), strings.TrimSpace(record[i])
		if digits(whole) && digits(part) {
			return fmt.Sprintf("; if \"%s,%s\" is one number with a decimal comma, write it with a point", whole, part)
		}
	}
	return ""
}

// next reads a row; io.EOF after the last.
func (r *reader) next() (*row, error) {
	record, err := r.csv.Read()
	if errors.Is(err, io.EOF) && r.bound.Err() == nil {
		if r.rows == 0 {
			return nil, errors.New("the file has no values: its only line names the columns")
		}
		return nil, io.EOF
	}
	if err != nil {
		return nil, r.fault(record, err)
	}
	r.row.line, _ = r.csv.FieldPos(0)
	if r.rows++; r.rows*len(r.row.values) > MaxRows {
		return nil, fmt.Errorf("line %d: the file has more than %d values, the most that are read; split it by metric",
			r.row.line, MaxRows)
	}
	for i := range record {
		record[i] = strings.TrimSpace(record[i])
		if !utf8.ValidString(record[i]) {
			return nil, r.wrong(i, errors.New("not UTF-8 text; convert the file to UTF-8"))
		}
	}
	r.row.record = record
	return &r.row, r.parse(record)
}

// wrong says where an error is.
func (r *reader) wrong(column int, err error) error {
	return fmt.Errorf("line %d, column %s: %w", r.row.line, r.header[column], err)
}

func (r *reader) parse(record []string) error {
	x := &r.row
	x.levels = x.levels[:0]
	for i, at := range r.at.factors {
		level, err := r.name(record, at)
		if err != nil {
			return err
		}
		if seen := r.levels[i]; !seen[level] {
			if seen[level] = true; len(seen) > MaxLevels {
				return r.wrong(at, fmt.Errorf("more than %d values: this column is no factor", MaxLevels))
			}
		}
		x.levels = append(x.levels, level)
	}
	for _, group := range []struct {
		at   int
		name *string
	}{{r.at.occasion, &x.occasion}, {r.at.block, &x.block}} {
		if group.at >= 0 {
			name, err := r.name(record, group.at)
			if err != nil {
				return err
			}
			*group.name = name
		}
	}
	if err := r.parseRepetition(record); err != nil {
		return err
	}
	for i := range x.values {
		if err := r.parseMetric(record, i); err != nil {
			return err
		}
		if r.format.Columns.aggregated() {
			return r.parseAggregate(record)
		}
		if err := r.parseValue(record, i); err != nil {
			return err
		}
	}
	return nil
}

// name is a cell that must not be empty. Equal names share their memory.
func (r *reader) name(record []string, at int) (string, error) {
	text := record[at]
	if text == "" {
		return "", r.wrong(at, errors.New("the cell is empty: want a name"))
	}
	known, ok := r.intern[text]
	if !ok {
		known = strings.Clone(text)
		r.intern[known] = known
	}
	return known, nil
}

// parseRepetition reads the number of a trial. Words are numbered in order of appearance.
func (r *reader) parseRepetition(record []string) error {
	at := r.at.repetition
	if at < 0 {
		return nil
	}
	n, err := strconv.ParseInt(record[at], 10, 32)
	switch {
	case record[at] == "":
		return r.wrong(at, errors.New("the cell is empty: want the number of the repetition"))
	case err == nil && !r.words && n >= 0:
		r.row.repetition = int32(n)
		return nil
	case len(r.numbers) == 0 && r.rows > 1 && !r.words:
		return r.wrong(at, fmt.Errorf("invalid repetition %q: want a whole number, as in the lines before", record[at]))
	}
	r.words = true
	number, ok := r.numbers[record[at]]
	if !ok {
		number = int32(len(r.numbers)) + 1
		r.numbers[strings.Clone(record[at])] = number
	}
	r.row.repetition = number
	return nil
}

// parseMetric reads the metric of a column of values.
func (r *reader) parseMetric(record []string, i int) error {
	m := &r.row.values[i].metric
	*m = r.metrics[i]
	var err error
	if r.at.metric >= 0 {
		if m.Name, err = r.name(record, r.at.metric); err != nil {
			return err
		}
	}
	if r.at.unit >= 0 && record[r.at.unit] != "" {
		if m.Unit, err = r.name(record, r.at.unit); err != nil {
			return err
		}
	}
	before, ok := r.units[m.Name]
	switch {
	case !ok && len(r.units) == MaxLevels:
		return r.wrong(r.at.metric, fmt.Errorf("more than %d metrics", MaxLevels))
	case !ok:
		r.units[m.Name] = unitAt{m.Unit, r.row.line}
	case before.unit != m.Unit:
		return r.wrong(r.at.unit, fmt.Errorf("%s has the unit %q, but %q in line %d: convert the values to one unit",
			m.Name, m.Unit, before.unit, before.line))
	}
	return nil
}

// parseValue reads the cell of a column of values.
func (r *reader) parseValue(record []string, i int) error {
	at, x := r.at.values[i], &r.row.values[i]
	value, err := number(record[at])
	x.missing = false
	switch {
	case errors.Is(err, errNoNumber) && r.format.Missing:
		x.missing, value = true, math.NaN()
	case errors.Is(err, errNoNumber):
		return r.wrong(at, fmt.Errorf(
			"no value (%q): want a number; --missing counts such rows as trials without a value", record[at]))
	case err != nil && r.wide:
		return r.wrong(at, fmt.Errorf("%w; if the column is no metric, give it as --factor %q, or leave it out by "+
			"--ignore %q", err, r.header[at], r.header[at]))
	case err != nil:
		return r.wrong(at, err)
	}
	x.value = value
	return nil
}

func (r *reader) parseAggregate(record []string) error {
	a := &r.row.aggregate
	*a = observation.Aggregate{SD: math.NaN()}
	var err error
	if a.Mean, err = number(record[r.at.mean]); err != nil {
		return r.wrong(r.at.mean, err)
	}
	if r.at.sd >= 0 {
		if a.SD, err = number(record[r.at.sd]); err != nil {
			return r.wrong(r.at.sd, err)
		}
		if a.SD < 0 {
			return r.wrong(r.at.sd, fmt.Errorf("invalid standard deviation %s: want 0 or more", record[r.at.sd]))
		}
	}
	if r.at.number >= 0 {
		if a.N, err = strconv.Atoi(record[r.at.number]); err != nil || a.N < 1 {
			return r.wrong(r.at.number, fmt.Errorf("invalid number of values %q: want a whole number from 1",
				record[r.at.number]))
		}
	}
	return nil
}

// differing names a column, of those without a role, in which two records differ.
func (r *reader) differing(a, b []string) string {
	i := slices.IndexFunc(r.at.others, func(i int) bool { return a[i] != b[i] })
	if i < 0 {
		return ""
	}
	return r.header[r.at.others[i]]
}
