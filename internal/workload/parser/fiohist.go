package parser

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

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
	counts map[int]int64 // by index
	n      int64
}

func newBinned() *binned { return &binned{counts: make(map[int]int64)} }

// add counts n values in the bin that holds v.
func (b *binned) add(v, n int64) error {
	if v < 0 || n < 0 {
		return fmt.Errorf("invalid bin: %d values of %d ns: want no negative number", n, v)
	}
	if n > 0 {
		b.counts[fioBinOf(v)] += n
		b.n += n
	}
	return nil
}

func (b *binned) merge(o *binned) {
	for i, n := range o.counts {
		b.counts[i] += n
	}
	b.n += o.n
}

// minus returns b − o, and false when o has more in some bin.
func (b *binned) minus(o *binned) (*binned, bool) {
	d := newBinned()
	for i, n := range o.counts {
		if n > b.counts[i] {
			return nil, false
		}
	}
	for i, n := range b.counts {
		if left := n - o.counts[i]; left > 0 {
			d.counts[i] = left
			d.n += left
		}
	}
	return d, true
}

// hist records each bin at its midpoint. The error is half a bin, at most 1/128 of a value.
func (b *binned) hist() (*hist.Histogram, error) {
	h := hist.New()
	for _, i := range slices.Sorted(maps.Keys(b.counts)) {
		if err := h.RecordN(fioBinMid(i), b.counts[i]); err != nil {
			return nil, err
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
	Counts    *binned
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
	br := bufio.NewReaderSize(bounded.NewReader(r, bounded.Limits{Line: maxRow, Total: maxLog}), 64<<10)
	for number := 1; ; number++ {
		line, err := br.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return rows, err
		}
		if line == "" {
			return rows, nil
		}
		if !strings.HasSuffix(line, "\n") {
			return rows, fmt.Errorf("line %d has no end: the log was cut off", number)
		}
		row, err := parseHistRow(line)
		if err != nil {
			return rows, fmt.Errorf("line %d: %w", number, err)
		}
		rows = append(rows, row)
	}
}

func parseHistRow(line string) (histRow, error) {
	next := func() (int64, error) {
		var field string
		field, line, _ = strings.Cut(line, ",")
		return strconv.ParseInt(strings.TrimSpace(field), 10, 64)
	}
	var head [3]int64
	for i := range head {
		v, err := next()
		if err != nil {
			return histRow{}, fmt.Errorf("invalid number in field %d", i+1)
		}
		head[i] = v
	}
	if head[0] < 0 || head[0] > maxStamp {
		return histRow{}, fmt.Errorf("invalid time %d ms", head[0])
	}
	if head[1] < 0 || head[1] > 2 {
		return histRow{}, fmt.Errorf("unknown direction %d", head[1])
	}
	n := strings.Count(line, ",") + 1
	coarse := max(0, bits.Len(uint(fioBins/n))-1)
	if coarse > 6 || fioBins>>coarse != n {
		return histRow{}, fmt.Errorf("invalid number of counts %d: want %d or that divided by a power of two", n,
			fioBins)
	}
	row := histRow{At: head[0], Direction: int(head[1]), BlockSize: head[2], Counts: newBinned()}
	for i := range n {
		count, err := next()
		if err != nil {
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
