package parser

import (
	"regexp"

	"github.com/cnsbench/cnsbench/internal/metric"
)

// The metrics of the tests oltp_* and select_random_* of sysbench, beside those of all tests.
var (
	sbTPS = declare("tps", metric.PerSecond, metric.Rate, metric.Higher,
		"committed transactions per second, and of each interval").Principal(1)
	sbQPS = declare("qps", metric.PerSecond, metric.Rate, metric.Higher,
		"queries per second, and of each interval").Principal(2)
	sbCommitted = declare(transaction+metric.Completed, metric.Count, metric.Quantity, "", "committed transactions")
	sbQueries   = declare("queries", metric.Count, metric.Quantity, "", "queries of all transactions")
	sbSelects   = declare("queries.read", metric.Count, metric.Quantity, "", "SELECT")
	sbChanges   = declare("queries.write", metric.Count, metric.Quantity, "", "INSERT, UPDATE, DELETE that changed a row")
	sbOthers    = declare("queries.other", metric.Count, metric.Quantity, "", "BEGIN, COMMIT, and changes of no row")
	sbErrors    = declare("errors", metric.Count, metric.Quantity, metric.Lower,
		"errors such as deadlocks, after which the transaction was repeated")
	sbErrorRate = declare("errors.rate", metric.PerSecond, metric.Rate, metric.Lower,
		"errors per second, and of each interval")
	sbReconnect = declare("reconnects", metric.Count, metric.Quantity, metric.Lower, "connections that were made again")
	sbQueue     = declare("queue", metric.Count, metric.Level, metric.Lower,
		"transactions that waited for a thread at the end of each interval, with a rate")
	sbTransaction = latencyOf(transaction, "transactions with their repetitions; with a rate from when sysbench queued "+
		"them (response)")

	oltpMetrics = []metric.Declaration{sbTransaction, sbTPS, sbQPS, sbCommitted, sbQueries, sbSelects, sbChanges, sbOthers,
		sbErrors, sbErrorRate, sbReconnect, sbQueue, sbMin, sbAverage, sbMax, sbP95, sbP99}
)

// SysbenchOLTP reads the output of the tests of databases; see sbTest.read.
func SysbenchOLTP(in Input) (Result, error) { return sbOLTP.read(in) }

var sbOLTP = &sbTest{metrics: oltpMetrics, event: sbTransaction, interval: (*sysbench).oltpInterval,
	figures: []sbFigure{
		{regexp.MustCompile(`^transactions:\s+\d+\s+\(([\d.]+) per sec\.\)$`), sbTPS, 1},
		{regexp.MustCompile(`^queries:\s+\d+\s+\(([\d.]+) per sec\.\)$`), sbQPS, 1},
		{regexp.MustCompile(`^transactions:\s+(\d+) `), sbCommitted, 1},
		{regexp.MustCompile(`^queries:\s+(\d+) `), sbQueries, 1},
		{regexp.MustCompile(`^read:\s+(\d+)$`), sbSelects, 1},
		{regexp.MustCompile(`^write:\s+(\d+)$`), sbChanges, 1},
		{regexp.MustCompile(`^other:\s+(\d+)$`), sbOthers, 1},
		{regexp.MustCompile(`^ignored errors:\s+(\d+) `), sbErrors, 1},
		{regexp.MustCompile(`^ignored errors:\s+\d+\s+\(([\d.]+) per sec\.\)$`), sbErrorRate, 1},
		{regexp.MustCompile(`^reconnects:\s+(\d+) `), sbReconnect, 1},
		{sbLeast, sbMin, ms}, {sbMean, sbAverage, ms}, {sbMost, sbMax, ms}, {sb95, sbP95, ms},
		{regexp.MustCompile(`^99th percentile:\s+([\d.]+)$`), sbP99, ms},
	}}

var (
	sbOLTPInterval = regexp.MustCompile(`^\[ (\d+)s \] thds: \d+ tps: ([\d.]+) qps: ([\d.]+) \(r/w/o: [\d./]+\) ` +
		`lat \(ms,(\d+)%\): ([\d.]+) err/s: ([\d.]+) reconn/s: [\d.]+$`)
	sbQueueLine = regexp.MustCompile(`^\[ (\d+)s \] queue length: (\d+), concurrency: \d+$`)
)

func (s *sysbench) oltpInterval(row string) {
	if m := sbOLTPInterval.FindStringSubmatch(row); m != nil {
		s.points(sbNumber(m[1]), m[4], sbNumber(m[5]), sbValue{sbTPS, sbNumber(m[2])}, sbValue{sbQPS, sbNumber(m[3])},
			sbValue{sbErrorRate, sbNumber(m[6])})
	} else if m := sbQueueLine.FindStringSubmatch(row); m != nil && s.last > 0 && sbNumber(m[1]) == s.last {
		s.queue = sbNumber(m[2])
		s.point(sbQueue, s.last-s.step, s.step, s.queue)
	}
}
