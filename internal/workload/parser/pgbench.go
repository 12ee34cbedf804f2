package parser

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// transaction is the operation of databases.
const transaction = "transaction"

// The metrics of pgbench. Those of the report have the values that it prints.
var (
	pgTPS     = rateOf("tps", "committed transactions per second").Principal(1)
	pgOK      = countOf(transaction+metric.Completed, "committed transactions")
	pgFailed  = faultsOf(transaction+metric.Failed, "failed transactions")
	pgSkipped = faultsOf(transaction+metric.Lost,
		"transactions that were due, and skipped because they were later than the latency limit")
	pgRetried = faultsOf("retried", "transactions that were tried more than once")
	pgRetries = faultsOf("retries", "retries of all transactions")
	pgLate    = faultsOf("aboveLimit", "committed transactions above the latency limit")
	pgAverage = timeOf("latency.average", metric.Level, "mean latency as the report has it")
	pgStddev  = timeOf("latency.stddev", metric.Statistic, "standard deviation of the latency as the report has it")
	pgLag     = timeOf("lag.average", metric.Level, "mean delay of the start behind the schedule, with a rate")
	pgMostLag = timeOf("lag.max", metric.Greatest, "the greatest delay")
	pgConnect = timeOf("connect", metric.Level,
		"time until all clients were connected, before the first transaction")
	pgReconnect = timeOf("reconnect", metric.Level,
		"mean time of a connection, where each transaction makes one (--connect); tps includes it")
	pgResponse = latencyOf(transaction, "committed transactions; with a rate from the scheduled start (response)")
	pgService  = latencyOf(transaction+metric.Service, "with a rate: from the actual start (service)")

	pgbenchMetrics = []metric.Declaration{pgResponse, pgService, pgTPS, pgOK, pgFailed, pgSkipped, pgRetried, pgRetries,
		pgLate, pgAverage, pgStddev, pgLag, pgMostLag, pgConnect, pgReconnect}
)

// Pgbench reads the output of pgbench 15: its report (*.txt), the logs of transactions of its threads (option -l;
// *_log.PID and *_log.PID.THREAD), and the lines of progress on stderr (-P). The scalars are those of the report.
// Histograms and the series by second are made from the logs, the series of TPS from the progress without them.
//
// The time in a log counts from the scheduled start where there is a schedule (-R), so that it is a response time; less
// the lag, which is logged too, it is the service time. Transactions that failed have no latency, and those that were
// skipped (-L) count as never done. A closed loop has the service view alone.
func Pgbench(in Input) (Result, error) {
	p := &pgbench{work: work{in: in}}
	_, err := p.run("pgbench", "there is no report and no log: name the file of its stdout (*.txt) and its logs "+
		"(pgbench_log.*) among the outputs", p.read, p.judge)
	if err == nil {
		err = p.transactions()
	}
	return p.res, err
}

// judge warns of what the report lacks.
func (p *pgbench) judge() {
	p.unread.warn(&p.res)
	switch {
	case p.reported():
		p.expect()
	case p.unread.n > 0 && p.failed == "":
		p.warn("pgbenchTruncated", "the report of pgbench has no line \"tps = …\" that this program knows: there are "+
			"figures of its log only")
	default:
		p.warn("pgbenchTruncated", "pgbench ended before its report: there are figures of its log only%s", p.because())
	}
	if len(p.logs) > 0 {
		p.res.Series = nil // of the progress
	}
}

// reported says that the report is complete: its last line is there.
func (p *pgbench) reported() bool { return p.res.has(pgTPS) }

// expect checks that the report has what pgbench 15 always prints. The deviation and the lag depend on options.
func (p *pgbench) expect() {
	want := []metric.Declaration{pgOK, pgAverage}
	need := func(needed bool, list ...metric.Declaration) {
		if needed {
			want = append(want, list...)
		}
	}
	need(p.modern, pgFailed)
	need(!p.res.has(pgConnect) && !p.res.has(pgReconnect), pgConnect)
	need(p.scheduled || p.measured || len(p.logs) > 0, pgStddev)
	need(p.scheduled, pgLag)
	need(p.res.has(pgRetried) || p.res.has(pgRetries), pgRetried, pgRetries) // of --max-tries
	need(p.res.has(pgSkipped) || p.res.has(pgLate), pgLate)                  // of --latency-limit
	need(p.res.has(pgLate) && p.scheduled, pgSkipped)
	p.res.expect(want...)
}

// pgbench is the work on one container's files.
type pgbench struct {
	work
	logs     []string
	progress op.Time // until when it is read
	// scheduled and retries: the log has these columns.
	scheduled, retries bool
	modern             bool // pgbench 15 or later wrote the report
	measured           bool // single latencies were measured: there is progress
}

var (
	pgLogName = re(`_log\.\d+(\.\d+)?$`)
	pgError   = re(`^pgbench: (?:error|fatal): (.*)$`)
)

// pgLines are the lines of the report and of progress. Those that are left out have no figures, or are the settings
// that the report repeats. What follows the rate, the last line of the whole, is of single scripts and statements.
var pgLines = []linePattern[*pgbench]{
	{pgError, func(p *pgbench, m []string) { p.fail(m[1]) }},
	{re(`^progress: (\d{9,10})\.(\d{3}) s, ([\d.]+) tps, (.*)$`), (*pgbench).addProgress}, // --progress-timestamp
	{re(`^progress: [\d.]+ s, `), func(p *pgbench, _ []string) { p.measured = true }},
	{re(`^maximum number of tries: `), func(p *pgbench, _ []string) { p.modern = true }},
	pgFigures(`^tps = ([\d.]+) \((?:without initial connection time|including reconnection times|`+
		`excluding connections establishing)\)$`, pgTPS),
	pgFigures(`^number of transactions actually processed: (\d+)(?:/\d+)?$`, pgOK),
	pgFigures(`^number of failed transactions: (\d+) \(`, pgFailed),
	pgFigures(`^number of transactions skipped: (\d+) \(`, pgSkipped),
	pgFigures(`^number of transactions retried: (\d+) \(`, pgRetried),
	pgFigures(`^total number of retries: (\d+)$`, pgRetries),
	pgFigures(`^number of transactions above the [\d.]+ ms latency limit: (\d+)/`, pgLate),
	pgFigures(`^latency average = ([\d.]+) ms$`, pgAverage),
	pgFigures(`^latency stddev = ([\d.]+) ms$`, pgStddev),
	pgFigures(`^rate limit schedule lag: avg ([\d.]+) \(max ([\d.]+)\) ms$`, pgLag, pgMostLag),
	pgFigures(`^initial connection time = ([\d.]+) ms$`, pgConnect),
	pgFigures(`^average connection time = ([\d.]+) ms$`, pgReconnect),
	{re(`^$|^(pgbench \(|transaction type: |scaling factor: |partition method: |partitions: |query mode: |` +
		`number of clients: |number of threads: |duration: |number of transactions per client: |` +
		`number of (serialization|deadlock) failures: |starting vacuum|end\.$|` +
		`latency average = [\d.]+ ms \(including failures\)$|` +
		`tps = [\d.]+ \(including connections establishing\)$|pghost: |cnsbench: )`), nil},
}

func pgFigures(pattern string, metrics ...metric.Declaration) linePattern[*pgbench] {
	return figureLine[*pgbench](pattern, inMs, metrics...)
}

// Limits of pgbench's output. A line of a log has at most 8 numbers.
const (
	maxPgReport = 16 << 20
	maxPgLine   = 4 << 10
)

// read reads the report and the progress, and lists the logs.
func (p *pgbench) read() (bool, error) {
	err := fs.WalkDir(p.in.Files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case pgLogName.MatchString(name):
			p.logs = append(p.logs, name)
		case path.Ext(name) == ".txt" || name == "stderr":
			return p.readText(name)
		}
		return nil
	})
	return p.reported() || len(p.logs) > 0 || len(p.res.Series) > 0, err
}

func (p *pgbench) readText(name string) error {
	text, _, err := p.text(name, maxPgReport)
	p.file = name
	for row := range rows(string(text)) {
		// stderr has messages of pgbench too, and of what started it
		message := name == "stderr" && !strings.HasPrefix(row, "progress: ") && !pgError.MatchString(row)
		if !message && !matched(p, pgLines, row) && !p.reported() {
			p.leave(row)
		}
	}
	return err
}

// figure takes a figure of the report, of several the first: later ones are of single scripts.
func (p *pgbench) figure(of metric.Declaration, v float64) {
	p.scalar(of, v)
	p.scheduled = p.scheduled || of == pgLag
	p.retries = p.retries || of == pgRetries
}

// addProgress adds a point of TPS; its time is the end of the interval.
func (p *pgbench) addProgress(m []string) {
	p.measured = true
	p.scheduled = p.scheduled || strings.Contains(m[4], "lag ")
	p.retries = p.retries || strings.Contains(m[4], " retried, ")
	tps, err := strconv.ParseFloat(m[3], 64)
	if err != nil || p.in.AtWall == nil {
		return
	}
	end, from := p.in.AtWall(unixNano(m[1], m[2])), p.progress
	if p.progress = end; len(p.res.Series) == 0 || end <= from {
		from = end - aSecond
	}
	p.interval(pgTPS, aSecond, from, end-from, tps)
}

// pgRow is one row of a log. Times are in µs.
type pgRow struct {
	outcome       string // empty: committed
	elapsed, lag  int64
	endedUnixNano int64
}

// parseRow reads "client transaction time script epoch µs [lag] [retries]", where time is a word for a transaction
// without a latency.
func (p *pgbench) parseRow(row string) (r pgRow, ok bool) {
	f := strings.Fields(row)
	want := 6
	if p.scheduled {
		want++
	}
	if p.retries {
		want++
	}
	if len(f) != want {
		return r, false
	}
	switch f[2] {
	case "skipped", "failed", "serialization", "deadlock":
		r.outcome, f[2] = f[2], "0"
	}
	n := make([]int64, len(f))
	for i := range f {
		v, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil || v < 0 || v > maxPgNumber {
			return r, false
		}
		n[i] = v
	}
	r.elapsed = n[2]
	if p.scheduled {
		r.lag = n[6]
	}
	r.endedUnixNano = n[4]*int64(time.Second) + n[5]*int64(time.Microsecond)
	return r, n[5] < 1e6 && (r.outcome != "" || r.lag <= r.elapsed)
}

// maxPgNumber is the greatest accepted number of a log: as seconds since 1970 and as µs it fits an int64 of ns.
const maxPgNumber = 9e9

// eachRow calls each for the rows of a log, and returns how many lines are none, with the first.
func (p *pgbench) eachRow(name string, each func(pgRow) bool) (unread int, first string, err error) {
	file, err := p.in.Files.Open(name)
	if err != nil {
		return 0, "", err
	}
	defer file.Close()
	from := bufio.NewReaderSize(file, 64<<10)
	for {
		text, err := bounded.ReadLine(from, maxPgLine)
		switch {
		case errors.Is(err, bounded.ErrTooLarge):
			return unread + 1, err.Error(), nil
		case errors.Is(err, io.EOF):
			if len(text) > 0 && p.reported() {
				return unread + 1, string(text), nil
			}
			return unread, first, nil // a half-written line of a pgbench that was ended
		case err != nil:
			return unread, first, err
		}
		r, ok := p.parseRow(string(text))
		if !ok {
			if unread++; unread == 1 {
				first = strings.TrimSpace(string(text[:min(len(text), 80)]))
			}
		} else if !each(r) {
			return unread, first, nil
		}
	}
}

// transactions makes histograms and series of the logs.
func (p *pgbench) transactions() error {
	if len(p.logs) > 0 {
		if aggregated, err := p.aggregated(); aggregated || err != nil {
			return err
		}
	}
	start := int64(-1)
	for _, name := range p.logs { // the earliest of the first transactions
		if _, _, err := p.eachRow(name, func(r pgRow) bool {
			if from := r.endedUnixNano - 1000*(r.elapsed-r.lag); start < 0 || from < start {
				start = from
			}
			return false
		}); err != nil {
			return err
		}
	}
	if start < 0 && len(p.logs) > 0 {
		p.warn("pgbenchNoTransaction", "the log has no transaction")
		return nil
	}
	t := &transactions{start: start, last: start, scheduled: p.scheduled, seconds: map[int64]*pgSecond{},
		total: newPgSecond()}
	for _, name := range p.logs {
		unread, first, err := p.eachRow(name, func(r pgRow) bool {
			t.add(r)
			return true
		})
		if err != nil {
			return err
		}
		if unread > 0 {
			p.warn("outputUnread", "%s has %d lines that are no transactions, first %q", name, unread, first)
		}
	}
	if t.outside > 0 {
		p.warn("outputUnread", "%d transactions of the log are not within %v of its start", t.outside,
			maxCells*time.Second)
	}
	t.results(p)
	return nil
}
