package parser

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/cnsbench/cnsbench/internal/hist"
)

// dbLatency is a histogram as RocksDB prints it, in µs.
type dbLatency struct {
	kind        string
	n           int64
	average     float64
	min, max    int64
	buckets     []dbBucket
	percentiles [][2]float64 // percent, value
}

// dbBucket has n values in (low, high].
type dbBucket struct{ low, high, n int64 }

// maxDBMicros is the greatest accepted value of a bucket. RocksDB's last bucket ends beyond it.
const maxDBMicros = int64(math.MaxInt64 / 1000)

var (
	errNoCount     = errors.New("it has no count")
	dbPercentile   = re(`P([\d.]+): ([\d.]+)`)
	dbLatencyLines = []linePattern[*dbLatency]{
		{re(`^Count: (\d+) Average: ([\d.]+) `), func(l *dbLatency, m []string) {
			l.n, _ = strconv.ParseInt(m[1], 10, 64)
			l.average, _ = strconv.ParseFloat(m[2], 64)
		}},
		{re(`^Min: (\d+) .*Max: (\d+)$`), func(l *dbLatency, m []string) { l.min, l.max = micros(m[1]), micros(m[2]) }},
		{re(`^Percentiles: .*$`), func(l *dbLatency, m []string) {
			for _, cell := range dbPercentile.FindAllStringSubmatch(m[0], -1) {
				p, err1 := strconv.ParseFloat(cell[1], 64)
				v, err2 := strconv.ParseFloat(cell[2], 64)
				if err1 == nil && err2 == nil {
					l.percentiles = append(l.percentiles, [2]float64{p, v})
				}
			}
		}},
		{re(`^[(\[]\s*(\d+),\s*(\d+) \]\s+(\d+)\s`), func(l *dbLatency, m []string) {
			if n, err := strconv.ParseInt(m[3], 10, 64); err == nil {
				l.buckets = append(l.buckets, dbBucket{micros(m[1]), micros(m[2]), n})
			}
		}},
	}
)

// micros converts digits to at most maxDBMicros.
func micros(digits string) int64 {
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return maxDBMicros
	}
	return min(v, maxDBMicros)
}

// dbSteps is into how many values of equal weight a bucket is divided, so that quantiles are within 0.1 % of those that
// db_bench interpolates.
const dbSteps = 512

// histogram spreads the values of each bucket evenly over it. With an error it has what could be read.
func (l *dbLatency) histogram() (*hist.Histogram, error) {
	h := hist.New()
	sum := int64(0)
	for _, b := range l.buckets {
		if b.high <= b.low || b.n < 0 || b.n > maxNumber {
			return h, fmt.Errorf("invalid bucket (%d, %d] with %d values", b.low, b.high, b.n)
		}
		sum += b.n
		if err := recordEvenly(h, float64(b.low)*1000, float64(b.high)*1000, b.n, l.min*1000, l.max*1000); err != nil {
			return h, err
		}
	}
	switch total := l.average * 1000 * float64(l.n); {
	case l.n == 0:
		return h, errNoCount
	case sum != l.n:
		return h, fmt.Errorf("the buckets have %d values, the count is %d", sum, l.n)
	case total >= math.MaxInt64:
		return h, errors.New("the sum of all latencies overflows")
	default:
		if err := h.SetExact(int64(math.Round(total)), l.min*1000, l.max*1000); err != nil {
			return h, err
		}
	}
	return h, l.agree()
}

// agree compares the percentiles that are printed with those of the buckets.
func (l *dbLatency) agree() error {
	for _, p := range l.percentiles {
		if got := l.percentile(p[0]); math.Abs(got-p[1]) > 0.006 { // two decimals
			return fmt.Errorf("P%v is printed as %.2f µs, the buckets give %.2f µs", p[0], p[1], got)
		}
	}
	return nil
}

// percentile is RocksDB's HistogramStat::Percentile, in µs.
func (l *dbLatency) percentile(p float64) float64 {
	threshold, below := float64(l.n)*(p/100), int64(0)
	for _, b := range l.buckets {
		if float64(below+b.n) >= threshold {
			v := float64(b.low)
			if b.n > 0 {
				v += float64(b.high-b.low) * (threshold - float64(below)) / float64(b.n)
			}
			return min(max(v, float64(l.min)), float64(l.max))
		}
		below += b.n
	}
	return float64(l.max)
}
