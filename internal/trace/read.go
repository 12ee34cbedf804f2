package trace

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/decode"
)

// Version is the version of the format. Read rejects other versions.
const Version = 1

// columns are the names of the fields, in the order of writing.
var columns = []string{"time", "op", "kind", "object", "source", "class", "size", "node", "outcome", "duration"}

// Limits of a file, so that a malformed one does not exhaust memory.
const (
	maxRecords = 5_000_000
	maxLine    = 1 << 20
	maxText    = 512 << 20 // decompressed
	maxField   = 4 << 10   // large enough for the names of several objects
)

// Read reads a whole trace, as CSV or JSON lines in any encoding that package decode reads, and sorts it by time.
// Errors contain the line.
func Read(r io.Reader) ([]Record, error) {
	plain, err := decode.NewReader(r, maxText+1) // the text has its own limit
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer plain.Close()
	in := bufio.NewReader(plain)
	first, err := in.Peek(1)
	if err != nil {
		return nil, notRead(err)
	}
	read := readCSV
	if first[0] == '{' {
		read = readLines
	}
	text := bounded.NewReader(in, bounded.Limits{Line: maxLine, Total: maxText, CSV: first[0] != '{'})
	records, err := read(bufio.NewReader(text))
	if text.Err() != nil {
		err = text.Err() // more specific than the error at the truncated end
	}
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	Sort(records)
	return records, nil
}

// notRead returns the error of reading the first byte.
func notRead(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("trace: the file is empty")
	}
	return fmt.Errorf("trace: %w", err)
}

// header is the first line of JSON lines. CSV has a comment instead.
type header struct {
	Trace *int `json:"cnsbenchTrace"`
}

func (h header) check() error {
	switch {
	case h.Trace == nil:
		return errors.New(`line 1: want {"cnsbenchTrace": 1}`)
	case *h.Trace != Version:
		return fmt.Errorf("line 1: the trace has format %d, this program reads format %d", *h.Trace, Version)
	}
	return nil
}

// comment is the beginning of a CSV file.
const comment = "# cnsbench trace "

func readCSV(in *bufio.Reader) ([]Record, error) {
	first, err := in.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("line 1: want %s%d", comment, Version)
	}
	version, ok := strings.CutPrefix(strings.TrimSpace(first), comment)
	if n, err := strconv.Atoi(version); !ok || err != nil || n != Version {
		return nil, fmt.Errorf("line 1: invalid header %q: want %s%d", strings.TrimSpace(first), comment, Version)
	}
	c := csv.NewReader(io.MultiReader(strings.NewReader("#\n"), in)) // stands for the header in line numbers
	c.Comment, c.ReuseRecord = '#', true
	names, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("line 2: names of columns: %w", err)
	}
	position := map[string]int{}
	for i, n := range names {
		if !slices.Contains(columns, n) {
			continue // unknown columns are ignored, like unknown fields
		}
		if _, twice := position[n]; twice {
			return nil, fmt.Errorf("line 2: duplicate column %q", n)
		}
		position[n] = i
	}
	for _, n := range columns[:4] {
		if _, ok := position[n]; !ok {
			return nil, fmt.Errorf("line 2: column %q is missing", n)
		}
	}
	var records []Record
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, err // names the line
		}
		line, _ := c.FieldPos(0)
		for i, field := range row {
			if len(field) > maxField {
				return nil, fmt.Errorf("line %d: field %d is too long: want at most %d bytes", line, i+1, maxField)
			}
		}
		record, err := parseRow(row, position)
		if err == nil {
			err = record.Check()
		}
		if err == nil && len(records) == maxRecords {
			err = errTooMany
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		records = append(records, record)
	}
}

var errTooMany = fmt.Errorf("more than %d records: split the trace", maxRecords)

func parseRow(row []string, position map[string]int) (Record, error) {
	text := func(name string) string {
		i, ok := position[name]
		if !ok {
			return ""
		}
		return unique.Make(row[i]).Value() // most values are repeated
	}
	r := Record{Op: Op(text("op")), Kind: Kind(text("kind")), Object: text("object"), Source: text("source"),
		Class: text("class"), Node: text("node"), Outcome: text("outcome"), Duration: Unknown}
	for _, n := range []struct {
		name string
		into *int64
	}{{"time", &r.Time}, {"size", &r.Size}, {"duration", &r.Duration}} {
		value := text(n.name)
		if value == "" && n.name != "time" {
			continue
		}
		v, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return r, fmt.Errorf("invalid %s %q: want an integer", n.name, value)
		}
		if *n.into = v; n.name == "duration" && v < 0 {
			return r, fmt.Errorf("invalid duration %d: must not be negative", v)
		}
	}
	return r, nil
}

// line is a record in JSON.
type line struct {
	Time     *int64 `json:"time"`
	Op       Op     `json:"op"`
	Kind     Kind   `json:"kind,omitempty"`
	Object   string `json:"object,omitempty"`
	Source   string `json:"source,omitempty"`
	Class    string `json:"class,omitempty"`
	Size     int64  `json:"size,omitempty"`
	Node     string `json:"node,omitempty"`
	Outcome  string `json:"outcome,omitempty"`
	Duration *int64 `json:"duration,omitempty"`
}

func readLines(in *bufio.Reader) ([]Record, error) {
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 0, 64<<10), 2*maxLine) // the reader has its own limit
	var records []Record
	n := 0
	for scan.Scan() {
		n++
		text := bytes.TrimSpace(scan.Bytes())
		if n == 1 {
			var h header
			_ = json.Unmarshal(text, &h) // a line that is not a header has no version
			if err := h.check(); err != nil {
				return nil, err
			}
			continue
		}
		if len(text) == 0 {
			continue
		}
		record, err := parseLine(text)
		if err == nil && len(records) == maxRecords {
			err = errTooMany
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		records = append(records, record)
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	return records, nil
}

func parseLine(text []byte) (Record, error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return Record{}, err
	}
	if l.Time == nil {
		return Record{}, errors.New("time is missing")
	}
	r := Record{Time: *l.Time, Op: l.Op, Kind: l.Kind, Object: l.Object, Source: l.Source, Class: l.Class,
		Size: l.Size, Node: l.Node, Outcome: l.Outcome, Duration: Unknown}
	if l.Duration != nil {
		if r.Duration = *l.Duration; r.Duration < 0 {
			return r, fmt.Errorf("invalid duration %d: must not be negative", r.Duration)
		}
	}
	return r, r.Check()
}
