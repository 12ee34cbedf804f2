package parser

import (
	"regexp"

	"github.com/cnsbench/cnsbench/internal/metric"
)

// The metrics of sysbench fileio, beside those of all tests.
var (
	sbReads  = declare(metric.Read+metric.IOPS, metric.PerSecond, metric.Rate, metric.Higher, "reads per second")
	sbWrites = declare(metric.Write+metric.IOPS, metric.PerSecond, metric.Rate, metric.Higher, "writes per second")
	sbSyncs  = declare(metric.Sync+metric.IOPS, metric.PerSecond, metric.Rate, metric.Higher, "fsyncs per second")
	sbRead   = declare(metric.Read+metric.Bandwidth, metric.BytesPerSecond, metric.Rate, metric.Higher,
		"bytes read per second")
	sbWritten = declare(metric.Write+metric.Bandwidth, metric.BytesPerSecond, metric.Rate, metric.Higher,
		"bytes written per second")
	sbIOs      = declare("events", metric.Count, metric.Quantity, "", "reads, writes and fsyncs of all threads")
	sbResponse = latencyOf("event", "reads, writes and fsyncs together; with a rate from when an event was due (response)")

	sysbenchMetrics = []metric.Declaration{sbResponse, sbReads, sbWrites, sbSyncs, sbRead, sbWritten, sbIOs, sbMin,
		sbAverage, sbMax, sbP95}
)

// Sysbench reads the output of the test fileio; see sbTest.read.
func Sysbench(in Input) (Result, error) { return sbFileIO.read(in) }

var sbFileIO = &sbTest{metrics: sysbenchMetrics, event: sbResponse, interval: (*sysbench).ioInterval,
	figures: []sbFigure{
		{regexp.MustCompile(`^reads/s:\s+([\d.]+)$`), sbReads, 1},
		{regexp.MustCompile(`^writes/s:\s+([\d.]+)$`), sbWrites, 1},
		{regexp.MustCompile(`^fsyncs/s:\s+([\d.]+)$`), sbSyncs, 1},
		{regexp.MustCompile(`^read, MiB/s:\s+([\d.]+)$`), sbRead, 1 << 20},
		{regexp.MustCompile(`^written, MiB/s:\s+([\d.]+)$`), sbWritten, 1 << 20},
		{sbEvents, sbIOs, 1}, {sbLeast, sbMin, ms}, {sbMean, sbAverage, ms}, {sbMost, sbMax, ms}, {sb95, sbP95, ms},
	}}

var sbIOInterval = regexp.MustCompile(`^\[ (\d+)s \] reads: ([\d.]+) MiB/s writes: ([\d.]+) MiB/s ` +
	`fsyncs: ([\d.]+)/s latency \(ms,(\d+)%\): ([\d.]+)$`)

func (s *sysbench) ioInterval(row string) {
	if m := sbIOInterval.FindStringSubmatch(row); m != nil {
		s.points(sbNumber(m[1]), m[5], sbNumber(m[6]), sbValue{sbRead, sbNumber(m[2]) * (1 << 20)},
			sbValue{sbWritten, sbNumber(m[3]) * (1 << 20)}, sbValue{sbSyncs, sbNumber(m[4])})
	}
}
