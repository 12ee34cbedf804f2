package parser

import "github.com/cnsbench/cnsbench/internal/metric"

// The metrics of sysbench fileio, beside those of all tests.
var (
	sbReads    = rateOf(metric.Read+metric.IOPS, "reads per second")
	sbWrites   = rateOf(metric.Write+metric.IOPS, "writes per second")
	sbSyncs    = rateOf(metric.Sync+metric.IOPS, "fsyncs per second")
	sbRead     = bandwidthOf(metric.Read+metric.Bandwidth, "bytes read per second")
	sbWritten  = bandwidthOf(metric.Write+metric.Bandwidth, "bytes written per second")
	sbResponse = latencyOf("event", "reads, writes and fsyncs together; with a rate from when an event was due (response)")

	sysbenchMetrics = []metric.Declaration{sbResponse, sbReads, sbWrites, sbSyncs, sbRead, sbWritten, sbEvents, sbMin,
		sbAverage, sbMax, sbP95}
)

// Sysbench reads the output of the test fileio; see sbTest.read.
func Sysbench(in Input) (Result, error) { return sbFileIO.read(in) }

var sbFileIO = &sbTest{sysbenchMetrics, sbResponse, []linePattern[*sysbench]{
	sbFigures(`^reads/s:\s+([\d.]+)$`, sbReads),
	sbFigures(`^writes/s:\s+([\d.]+)$`, sbWrites),
	sbFigures(`^fsyncs/s:\s+([\d.]+)$`, sbSyncs),
	sbFigures(`^read, MiB/s:\s+([\d.]+)$`, sbRead),
	sbFigures(`^written, MiB/s:\s+([\d.]+)$`, sbWritten),
	sbInterval(`^\[ (\d+)s \] reads: ([\d.]+) MiB/s writes: ([\d.]+) MiB/s fsyncs: ([\d.]+)/s `+
		`latency \(ms,\d+%\): [\d.]+$`, sbRead, sbWritten, sbSyncs),
}}
