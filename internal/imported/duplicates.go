package imported

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strings"
)

// Counts describe the rows.
type Counts struct {
	Rows    int `json:"rows"`
	Missing int `json:"missing"` // cells without a value
	Metrics int `json:"metrics"`
	// Levels counts the values of each factor.
	Levels map[string]int `json:"levels"`
}

// scanned is what a pass over a file found.
type scanned struct {
	format Format // with all columns of values by name
	counts Counts
	seed   maphash.Seed
	keys   []uint64 // hashes of what must differ in each row; empty if rows may be equal
}

// scan checks every row of a file.
func scan(from io.Reader, f Format) (*scanned, error) {
	r, err := newReader(from, f)
	if err != nil {
		return nil, err
	}
	s := &scanned{format: r.format, seed: maphash.MakeSeed()}
	unique := f.Columns.Repetition != "" || f.Columns.aggregated()
	for {
		x, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for i := range x.values {
			if x.values[i].missing {
				s.counts.Missing++
			}
		}
		if unique {
			s.keys = append(s.keys, s.key(x))
		}
	}
	s.counts.Rows, s.counts.Metrics, s.counts.Levels = r.rows, len(r.units), map[string]int{}
	for i, f := range f.Columns.Factors {
		s.counts.Levels[f] = len(r.levels[i])
	}
	return s, nil
}

// key is a hash of the labels of a row.
func (s *scanned) key(x *row) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	for _, part := range labels(x) {
		_, _ = h.WriteString(part)
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}

// labels are what must not be equal in two rows. Of several metrics all rows have the same.
func labels(x *row) []string {
	return append([]string{x.occasion, x.block, fmt.Sprint(x.repetition), x.values[0].metric.Name}, x.levels...)
}

// duplicate reports two rows with the same labels. It reads the file again only if two rows have the same hash.
func (s *scanned) duplicate(open func() (io.ReadCloser, error)) error {
	slices.Sort(s.keys)
	same := map[uint64]bool{}
	for i := 1; i < len(s.keys) && len(same) < 1000; i++ {
		if s.keys[i] == s.keys[i-1] {
			same[s.keys[i]] = true
		}
	}
	if len(same) == 0 {
		return nil
	}
	f, err := open()
	if err != nil {
		return err
	}
	defer f.Close()
	return s.find(f, same)
}

// find reads a file up to the first row whose labels are those of an earlier one, among rows of the given hashes.
func (s *scanned) find(from io.Reader, same map[uint64]bool) error {
	r, err := newReader(from, s.format)
	if err != nil {
		return err
	}
	type earlier struct {
		line   int
		record []string
	}
	seen := map[string]earlier{}
	for {
		x, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil // equal hashes of different labels
		}
		if err != nil {
			return err
		}
		if !same[s.key(x)] {
			continue
		}
		name := strings.Join(labels(x), "\x00")
		before, ok := seen[name]
		if !ok {
			seen[name] = earlier{line: x.line, record: cloned(x.record)}
			continue
		}
		return s.explain(r, before.line, x.line, before.record, x.record)
	}
}

// explain says what two rows have in common, and what to do.
func (s *scanned) explain(r *reader, first, second int, a, b []string) error {
	var same []string
	for _, n := range s.format.Columns.named() {
		switch n.flag {
		case "value", "mean", "sd", "n", "unit":
		default:
			same = append(same, n.column)
		}
	}
	text := fmt.Sprintf("lines %d and %d are of one trial: they have the same %s", first, second, strings.Join(same, ", "))
	if column := r.differing(a, b); column != "" {
		return fmt.Errorf("%s, but another %s: name it too (--factor %s, or --occasion %s)", text, column, column, column)
	}
	if !slices.Equal(a, b) {
		return fmt.Errorf("%s, but another value: remove one, or leave out --repetition if the rows are repetitions", text)
	}
	return fmt.Errorf("%s and value: remove one", text)
}

// cloned copies cells that the CSV reader uses again.
func cloned(record []string) []string {
	list := make([]string, len(record))
	for i, c := range record {
		list[i] = strings.Clone(c)
	}
	return list
}
