package iotrace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func isBiosnoop(first string) bool {
	names := columnsOf(first)
	return slices.Contains(names, "SECTOR") && slices.ContainsFunc(names, isTime)
}

func isTime(name string) bool { return strings.HasPrefix(name, "TIME(") }

// columnsOf splits a header or a line of the table, or of the same table as CSV.
func columnsOf(text string) []string {
	if !strings.Contains(text, ",") {
		return strings.Fields(text)
	}
	fields := strings.Split(text, ",")
	for i := range fields {
		fields[i] = strings.Trim(strings.TrimSpace(fields[i]), `"`)
	}
	return fields
}

// biosnoop is the state of a parser of its table.
type biosnoop struct {
	ordered
	names []string
	csv   bool
}

// readBiosnoop reads the table that the biosnoop of BCC or libbpf-tools prints, or the same columns as CSV. TIME(s) is
// that of the completion; the issue is LAT(ms) before.
func readBiosnoop(l *lines, c *collector) error {
	b := biosnoop{names: columnsOf(l.text), csv: strings.Contains(l.text, ",")}
	for _, want := range []string{"TIME(s)", "DISK", "T", "SECTOR", "BYTES", "LAT(ms)"} {
		if n := len(slices.DeleteFunc(slices.Clone(b.names), func(s string) bool { return s != want })); n != 1 {
			return l.errorf("column %s is there %d times: want TIME(s), DISK, T, SECTOR, BYTES and LAT(ms)", want, n)
		}
	}
	for l.next() {
		if err := b.line(l.text, c); err != nil {
			return l.errorf("%w", err)
		}
	}
	return nil
}

// fields returns the values by column. In text the name of a process, COMM, may have spaces.
func (b *biosnoop) fields(text string) (map[string]string, error) {
	fields := strings.Fields(text)
	if b.csv {
		fields = strings.Split(text, ",")
	}
	comm, extra := slices.Index(b.names, "COMM"), len(fields)-len(b.names)
	if comm >= 0 && extra > 0 {
		fields = slices.Delete(fields, comm, comm+extra)
	}
	if len(fields) != len(b.names) {
		return nil, fmt.Errorf("invalid number of columns: want %d, as in the header", len(b.names))
	}
	values := make(map[string]string, len(fields))
	for i, name := range b.names {
		values[name] = strings.Trim(strings.TrimSpace(fields[i]), `"`)
	}
	return values, nil
}

func (b *biosnoop) line(text string, c *collector) error {
	v, err := b.fields(text)
	if err != nil {
		return err
	}
	if skip, err := c.skips(v["DISK"]); skip || err != nil {
		return err
	}
	end, err := parseDecimal(v["TIME(s)"], 1e9)
	if err != nil {
		return fmt.Errorf("invalid TIME(s) %q: %w", v["TIME(s)"], err)
	}
	if err := b.check(end); err != nil {
		return err
	}
	latency, err := parseDecimal(v["LAT(ms)"], 1e6)
	if err != nil {
		return fmt.Errorf("invalid LAT(ms) %q: want milliseconds", v["LAT(ms)"])
	}
	from, err := strconv.ParseInt(v["SECTOR"], 10, 64)
	if err != nil && v["BYTES"] != "0" || from > maxOffset/sector { // a flush has sector -1 or ?
		return fmt.Errorf("invalid SECTOR %q", v["SECTOR"])
	}
	size, err := strconv.ParseInt(v["BYTES"], 10, 64)
	if err != nil || size < 0 {
		return fmt.Errorf("invalid BYTES %q", v["BYTES"])
	}
	// The first request may have been issued before the first line's time, which is 0.
	x := IO{At: max(0, end+origin-latency), Latency: latency, Op: opOf(v["T"]), Offset: from * sector, Size: size}
	if size == 0 {
		x.Op, x.Offset = Sync, 0
	}
	if x.Op == "" {
		return fmt.Errorf("unknown kind T %q: want R, W, D or F", v["T"])
	}
	return c.add(x, 0)
}

// origin is added to all times so that none is negative.
const origin = 3600 * int64(1e9)
