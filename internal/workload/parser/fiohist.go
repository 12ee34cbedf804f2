package parser

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/hist"
)

const (
	// fioBins is the number of fio's latency bins: 29 groups of 64
	// (FIO_IO_U_PLAT_NR in fio 3.x's stat.h).
	fioBins = 29 * 64
	// maxStamp is the year 2255 in Unix ms; later times overflow in ns.
	maxStamp = 9_000_000_000_000
	// fioSaturates is the upper end of the last bin, in ns.
	fioSaturates = int64(1) << 34
)

// fioBinMid returns the midpoint in ns of bin i, which is its name in fio's output. Bins
// below 128 are 1 ns wide; in group e = i/64 − 1 they are 2^e ns wide.
func fioBinMid(i int) int64 {
	if i < 128 {
		return int64(i)
	}
	e := i/64 - 1
	low := int64(64+i%64) << e
	return low + int64(1)<<(e-1)
}

// fioBinOf returns the index of the bin of v ns.
func fioBinOf(v int64) int {
	if v < 128 {
		return int(max(v, 0))
	}
	e := bits.Len64(uint64(v)) - 7
	return min((e+1)*64+int((v>>e)&63), fioBins-1)
}

// binned counts values in fio's bins, so that slices can be subtracted from totals exactly.
type binned struct {
	counts []binCount // ascending by bin
	n      int64
}

type binCount struct {
	bin int
	n   int64
}

// add counts n values in the bin that holds v.
func (b *binned) add(v, n int64) error {
	if v < 0 || n < 0 {
		return fmt.Errorf("invalid bin: %d values of %d ns: want no negative number", n, v)
	}
	c := binCount{fioBinOf(v), n}
	if last := len(b.counts) - 1; n > 0 && (last < 0 || b.counts[last].bin < c.bin) { // the rows of a log are ascending
		b.counts, b.n = append(b.counts, c), b.n+n
	} else if n > 0 {
		b.merge(&binned{[]binCount{c}, n})
	}
	return nil
}

func (b *binned) merge(o *binned) {
	i := 0
	for _, c := range o.counts {
		for i < len(b.counts) && b.counts[i].bin < c.bin {
			i++
		}
		if i < len(b.counts) && b.counts[i].bin == c.bin {
			b.counts[i].n += c.n
		} else {
			b.counts = slices.Insert(b.counts, i, c)
		}
	}
	b.n += o.n
}

// minus returns b − o, and false when o has more in some bin.
func (b *binned) minus(o *binned) (*binned, bool) {
	d := &binned{counts: slices.Clone(b.counts), n: b.n}
	for _, c := range o.counts {
		d.merge(&binned{[]binCount{{c.bin, -c.n}}, -c.n})
	}
	d.counts = slices.DeleteFunc(d.counts, func(c binCount) bool { return c.n == 0 })
	return d, !slices.ContainsFunc(d.counts, func(c binCount) bool { return c.n < 0 })
}

// hist records each bin at its midpoint. The error is half a bin, at most 1/128 of a value.
func (b *binned) hist() (*hist.Histogram, error) {
	h := hist.New()
	for _, c := range b.counts {
		if err := h.RecordN(fioBinMid(c.bin), c.n); err != nil {
			return h, err
		}
	}
	return h, nil
}

// histRow is one row of a histogram log: the completions of one direction
// since that direction's last row.
type histRow struct {
	At        int64 // ms, on the log's own time base
	Direction int   // 0 read, 1 write, 2 trim
	BlockSize int64 // of the last I/O
	Counts    binned
}

// Limits of fio's output. A row has at most 1856 counts.
const (
	maxRow    = 64 << 10
	maxLog    = 1 << 30
	maxReport = 128 << 20
)

// readHistLog reads a log of write_hist_log: "time, direction, block size,
// counts…". A log_hist_coarseness of c leaves 1856 / 2^c counts. Rows before a
// broken one are returned with the error.
func readHistLog(r io.Reader) ([]histRow, error) {
	var rows []histRow
	br := bufio.NewReaderSize(bounded.NewReader(r, bounded.Limits{Line: maxRow, Total: maxLog}), maxRow+1)
	for number := 1; ; number++ {
		line, err := br.ReadSlice('\n')
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return rows, err
		case len(line) == 0:
			return rows, nil
		case err != nil:
			return rows, fmt.Errorf("line %d has no end: the log was cut off", number)
		}
		row, err := parseHistRow(line)
		if err != nil {
			return rows, fmt.Errorf("line %d: %w", number, err)
		}
		rows = append(rows, row)
	}
}

// zeros are eight of the counts that most of a row is.
var zeros = []byte(" 0, 0, 0, 0, 0, 0, 0, 0,")

func parseHistRow(line []byte) (histRow, error) {
	line = bytes.TrimRight(line, "\r\n")
	var head [3]int64
	var ok bool
	for i := range head {
		if head[i], line, ok = cutNumber(line); !ok {
			return histRow{}, fmt.Errorf("invalid number in field %d", i+1)
		}
	}
	if head[0] < 0 || head[0] > maxStamp {
		return histRow{}, fmt.Errorf("invalid time %d ms", head[0])
	}
	if head[1] < 0 || head[1] > 2 {
		return histRow{}, fmt.Errorf("unknown direction %d", head[1])
	}
	n := bytes.Count(line, []byte(",")) + 1
	coarse := max(0, bits.Len(uint(fioBins/n))-1)
	if coarse > 6 || fioBins>>coarse != n {
		return histRow{}, fmt.Errorf("invalid number of counts %d: want %d or that divided by a power of two", n,
			fioBins)
	}
	row := histRow{At: head[0], Direction: int(head[1]), BlockSize: head[2]}
	for i := 0; i < n; i++ {
		for bytes.HasPrefix(line, zeros) {
			line, i = line[len(zeros):], i+8
		}
		for bytes.HasPrefix(line, zeros[:3]) {
			line, i = line[3:], i+1
		}
		var count int64
		if count, line, ok = cutNumber(line); !ok {
			return histRow{}, fmt.Errorf("invalid count %d", i+1)
		}
		// The middle of the 2^coarse merged bins.
		mid := fioBinMid(i<<coarse + (1<<coarse)/2)
		if err := row.Counts.add(mid, count); err != nil {
			return histRow{}, err
		}
	}
	return row, nil
}

// cutNumber returns the number before the first comma, or in all of the text, and what follows the comma.
func cutNumber(text []byte) (n int64, rest []byte, ok bool) {
	field, rest, _ := bytes.Cut(text, []byte(","))
	n, err := strconv.ParseInt(string(bytes.TrimSpace(field)), 10, 64)
	return n, rest, err == nil
}
