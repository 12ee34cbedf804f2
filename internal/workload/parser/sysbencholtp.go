package parser

import "github.com/cnsbench/cnsbench/internal/metric"

// The metrics of the tests oltp_* and select_random_* of sysbench, beside those of all tests.
var (
	sbTPS       = rateOf("tps", "committed transactions per second, and of each interval").Principal(1)
	sbQPS       = rateOf("qps", "queries per second, and of each interval").Principal(2)
	sbCommitted = countOf(transaction+metric.Completed, "committed transactions")
	sbQueries   = countOf("queries", "queries of all transactions")
	sbSelects   = countOf("queries.read", "SELECT")
	sbChanges   = countOf("queries.write", "INSERT, UPDATE, DELETE that changed a row")
	sbOthers    = countOf("queries.other", "BEGIN, COMMIT, and changes of no row")
	sbErrors    = faultsOf("errors", "errors such as deadlocks, after which the transaction was repeated")
	sbErrorRate = declare("errors.rate", metric.PerSecond, metric.Rate, metric.Lower,
		"errors per second, and of each interval")
	sbReconnect = faultsOf("reconnects", "connections that were made again")
	sbQueue     = declare("queue", metric.Count, metric.Level, metric.Lower,
		"transactions that waited for a thread at the end of each interval, with a rate")
	sbTransaction = latencyOf(transaction, "transactions with their repetitions; with a rate from when sysbench queued "+
		"them (response)")

	oltpMetrics = []metric.Declaration{sbTransaction, sbTPS, sbQPS, sbCommitted, sbQueries, sbSelects, sbChanges, sbOthers,
		sbErrors, sbErrorRate, sbReconnect, sbQueue, sbMin, sbAverage, sbMax, sbP95, sbP99}
)

// SysbenchOLTP reads the output of the tests of databases; see sbTest.read.
func SysbenchOLTP(in Input) (Result, error) { return sbOLTP.read(in) }

var sbOLTP = &sbTest{oltpMetrics, sbTransaction, []linePattern[*sysbench]{
	sbFigures(`^transactions:\s+(\d+)\s+\(([\d.]+) per sec\.\)$`, sbCommitted, sbTPS),
	sbFigures(`^queries:\s+(\d+)\s+\(([\d.]+) per sec\.\)$`, sbQueries, sbQPS),
	sbFigures(`^read:\s+(\d+)$`, sbSelects),
	sbFigures(`^write:\s+(\d+)$`, sbChanges),
	sbFigures(`^other:\s+(\d+)$`, sbOthers),
	sbFigures(`^ignored errors:\s+(\d+)\s+\(([\d.]+) per sec\.\)$`, sbErrors, sbErrorRate),
	sbFigures(`^reconnects:\s+(\d+) `, sbReconnect),
	sbInterval(`^\[ (\d+)s \] thds: \d+ tps: ([\d.]+) qps: ([\d.]+) \(r/w/o: [\d./]+\) `+
		`lat \(ms,\d+%\): [\d.]+ err/s: ([\d.]+) reconn/s: [\d.]+$`, sbTPS, sbQPS, sbErrorRate),
	{re(`^\[ (\d+)s \] queue length: (\d+), concurrency: \d+$`), (*sysbench).queued},
}}
