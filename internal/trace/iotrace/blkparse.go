package iotrace

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// sector is the unit of offsets and sizes of the block layer in bytes.
const sector = 512

// maxOpen bounds the requests that wait for their completion; further ones have no latency.
const maxOpen = 65536

// blkLine is a line in blkparse's default format: device, CPU, sequence number, time, process ID, action, RWBS, and for
// most actions sector + sectors and the process.
var blkLine = regexp.MustCompile(`^(\d+,\d+)\s+\d+\s+\d+\s+(\d+\.\d+)\s+\d+\s+(\S+)\s+(\S+)(?:\s+(\d+)\s+\+\s+(\d+))?`)

// blkSummary begins the statistics that blkparse prints at the end.
var blkSummary = regexp.MustCompile(`^(CPU\d+ |Total |Throughput|Events \(|Skips: |Input file )`)

func isBlkparse(first string) bool {
	return blkLine.MatchString(first) || blkSummary.MatchString(first)
}

// request identifies one that was queued.
type request struct {
	device string
	op     Op
	sector int64
}

// blkReader is the state of a parser of blkparse's text.
type blkReader struct {
	ordered
	begin string // the action that begins an operation
	open  map[request]int
}

// readBlkparse reads requests as they were queued (Q), so that merges and splits of the block layer do not change
// them, or as they were issued (D) if the trace has no Q before the first D. A completion (C) gives the latency.
func readBlkparse(l *lines, c *collector) error {
	b := blkReader{open: map[request]int{}}
	for ok := true; ok; ok = l.next() {
		m := blkLine.FindStringSubmatch(l.text)
		if m == nil {
			if blkSummary.MatchString(l.text) {
				return nil // only statistics follow
			}
			return l.errorf("invalid line %.60q: want blkparse's default format", l.text)
		}
		if err := b.line(m, c); err != nil {
			return l.errorf("%w", err)
		}
	}
	return nil
}

func (b *blkReader) line(m []string, c *collector) error {
	device, action := m[1], m[3]
	if action != "Q" && action != "D" && action != "C" {
		return nil
	}
	if skip, err := c.skips(device); skip || err != nil {
		return err
	}
	at, err := parseDecimal(m[2], 1e9)
	if err != nil {
		return fmt.Errorf("invalid time %q: %w", m[2], err)
	}
	if err := b.check(at); err != nil {
		return err
	}
	if b.begin == "" && action != "C" {
		b.begin = action
	}
	x := IO{At: at, Op: opOf(m[4]), Latency: Unknown}
	if x.Op == "" || action != b.begin && action != "C" {
		return nil
	}
	if m[6] != "" {
		from, err1 := strconv.ParseInt(m[5], 10, 64)
		n, err2 := strconv.ParseInt(m[6], 10, 64)
		if err1 != nil || err2 != nil || from > maxOffset/sector || n > maxTransfer/sector {
			return fmt.Errorf("invalid sectors %s + %s", m[5], m[6])
		}
		x.Offset, x.Size = from*sector, n*sector
	}
	if x.Size == 0 && x.Op.Transfers() {
		if !strings.Contains(m[4], "F") {
			return nil
		}
		x.Op = Sync // an empty flush
	}
	if action == "C" {
		b.complete(device, x, c)
		return nil
	}
	return b.queue(device, x, c)
}

func (b *blkReader) queue(device string, x IO, c *collector) error {
	if x.Op == Sync {
		x.Offset, x.Size = 0, 0
	}
	if len(b.open) < maxOpen && x.Op.Transfers() {
		b.open[request{device, x.Op, x.Offset}] = len(c.ios)
	}
	return c.add(x, 0)
}

// complete sets the latency of a request that was neither merged nor split.
func (b *blkReader) complete(device string, x IO, c *collector) {
	key := request{device, x.Op, x.Offset}
	if i, ok := b.open[key]; ok {
		if delete(b.open, key); c.ios[i].Size == x.Size && x.At >= c.ios[i].At {
			c.ios[i].Latency = x.At - c.ios[i].At
		}
	}
}

// opOf returns the kind that blktrace's RWBS letters mean: D is a discard, a flush without a write a sync; "" if the
// request carries no I/O.
func opOf(rwbs string) Op {
	switch {
	case strings.Contains(rwbs, "D"):
		return trim
	case strings.Contains(rwbs, "W"):
		return Write
	case strings.Contains(rwbs, "R"):
		return Read
	case strings.HasPrefix(rwbs, "F"):
		return Sync
	}
	return ""
}

// maxDisorder is how far lines may be out of order: events of several CPUs are merged by their readers.
const maxDisorder = 1e9

// ordered checks that lines are nearly sorted by time.
type ordered struct{ latest int64 }

func (o *ordered) check(at int64) error {
	if at < o.latest-maxDisorder {
		return fmt.Errorf("the time is %.1f s before that of a line above: sort the trace", float64(o.latest-at)/1e9)
	}
	o.latest = max(o.latest, at)
	return nil
}
