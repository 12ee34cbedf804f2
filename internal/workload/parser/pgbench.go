package parser

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
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
	pgTPS = declare("tps", metric.PerSecond, metric.Rate, metric.Higher,
		"committed transactions per second").Principal(1)
	pgOK      = declare(transaction+metric.Completed, metric.Count, metric.Quantity, "", "committed transactions")
	pgFailed  = declare(transaction+metric.Failed, metric.Count, metric.Quantity, metric.Lower, "failed transactions")
	pgSkipped = declare(transaction+metric.Lost, metric.Count, metric.Quantity, metric.Lower,
		"transactions that were due, and skipped because they were later than the latency limit")
	pgRetried = declare("retried", metric.Count, metric.Quantity, metric.Lower,
		"transactions that were tried more than once")
	pgRetries = declare("retries", metric.Count, metric.Quantity, metric.Lower, "retries of all transactions")
	pgLate    = declare("aboveLimit", metric.Count, metric.Quantity, metric.Lower,
		"committed transactions above the latency limit")
	pgAverage = declare("latency.average", metric.Nanoseconds, metric.Level, metric.Lower,
		"mean latency as the report has it")
	pgStddev = declare("latency.stddev", metric.Nanoseconds, metric.Statistic, metric.Lower,
		"standard deviation of the latency as the report has it")
	pgLag = declare("lag.average", metric.Nanoseconds, metric.Level, metric.Lower,
		"mean delay of the start behind the schedule, with a rate")
	pgMostLag = declare("lag.max", metric.Nanoseconds, metric.Greatest, metric.Lower, "the greatest delay")
	pgConnect = declare("connect", metric.Nanoseconds, metric.Level, metric.Lower,
		"time until all clients were connected, before the first transaction")
	pgReconnect = declare("reconnect", metric.Nanoseconds, metric.Level, metric.Lower,
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
	if err := p.read(); err != nil {
		return p.res, fmt.Errorf("pgbench: %w", err)
	}
	if !p.report && len(p.logs) == 0 && p.progress.n() == 0 {
		return p.res, errors.New("pgbench: there is no report and no log: name the file of its stdout (*.txt) and its logs " +
			"(pgbench_log.*) among the outputs")
	}
	p.unread.warn(&p.res)
	switch {
	case p.report:
		p.complete()
	case p.failure != "":
		p.warn("pgbenchTruncated", "pgbench ended before its report: there are figures of its log only: %s", p.failure)
	case p.unread.n > 0:
		p.warn("pgbenchTruncated", "the report of pgbench has no line \"tps = …\" that this program knows: there are "+
			"figures of "+
			"its log only")
	default:
		p.warn("pgbenchTruncated", "pgbench ended before its report: there are figures of its log only")
	}
	if err := p.transactions(); err != nil {
		return p.res, err
	}
	if len(p.logs) == 0 {
		p.res.Series = append(p.res.Series, p.progress.all()...)
	}
	return p.res, nil
}

// complete checks that the report has what pgbench 15 always prints. The deviation and the lag depend on options.
func (p *pgbench) complete() {
	want := []metric.Declaration{pgOK, pgAverage}
	has := func(d metric.Declaration) bool {
		return slices.ContainsFunc(p.res.Scalars, func(s metric.Scalar) bool { return s.Metric == d.Name })
	}
	if p.modern {
		want = append(want, pgFailed)
	}
	if !has(pgConnect) && !has(pgReconnect) {
		want = append(want, pgConnect)
	}
	if p.scheduled || p.measured || len(p.logs) > 0 {
		want = append(want, pgStddev)
	}
	if p.scheduled {
		want = append(want, pgLag)
	}
	if has(pgRetried) || has(pgRetries) { // of --max-tries
		want = append(want, pgRetried, pgRetries)
	}
	if has(pgSkipped) || has(pgLate) { // of --latency-limit, the first only with a rate
		want = append(want, pgLate)
	}
	if has(pgLate) && p.scheduled {
		want = append(want, pgSkipped)
	}
	p.res.expect(want...)
}

// pgbench is the work on one container's files.
type pgbench struct {
	work
	logs     []string
	report   bool // complete
	progress intervals
	reported op.Time // until when
	// scheduled and retries: the log has these columns.
	scheduled, retries bool
	modern             bool   // pgbench 15 or later wrote the report
	measured           bool   // single latencies were measured: there is progress
	failure            string // the first error that pgbench printed
	unread             unreadLines
}

// pgError is a message that something failed.
var pgError = regexp.MustCompile(`^pgbench: (?:error|fatal): (.*)$`)

var pgLogName = regexp.MustCompile(`_log\.\d+(\.\d+)?$`)

// read reads the report and the progress, and lists the logs.
func (p *pgbench) read() error {
	return fs.WalkDir(p.in.Files, ".", func(name string, d fs.DirEntry, err error) error {
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
}

// Limits of pgbench's output. A line of a log has at most 8 numbers.
const (
	maxPgReport = 16 << 20
	maxPgLine   = 4 << 10
)

func (p *pgbench) readText(name string) error {
	text, ok, err := p.text(name, maxPgReport)
	if !ok {
		return err
	}
	for row := range bytes.Lines(text) {
		line := strings.TrimSpace(string(row))
		switch m := pgError.FindStringSubmatch(line); {
		case !bytes.HasSuffix(row, []byte("\n")), line == "": // half written
		case m != nil:
			p.failure = cmp.Or(p.failure, m[1])
		case name == "stderr" && !strings.HasPrefix(line, "progress: "):
			// messages of pgbench and of what started it
		case !p.readLine(line) && !p.report && !pgLeftOut.MatchString(line):
			p.unread.add(name, line)
		}
	}
	return nil
}

// ms are the ns of a millisecond, the unit of times in the report.
const ms = float64(time.Millisecond)

// pgFigures are the lines of the report, each with the metrics of its numbers.
var pgFigures = []struct {
	line    *regexp.Regexp
	metrics []metric.Declaration
}{
	{regexp.MustCompile(`^tps = ([\d.]+) \((?:without initial connection time|including reconnection times|` +
		`excluding connections establishing)\)$`), []metric.Declaration{pgTPS}},
	{regexp.MustCompile(`^number of transactions actually processed: (\d+)(?:/\d+)?$`), []metric.Declaration{pgOK}},
	{regexp.MustCompile(`^number of failed transactions: (\d+) \(`), []metric.Declaration{pgFailed}},
	{regexp.MustCompile(`^number of transactions skipped: (\d+) \(`), []metric.Declaration{pgSkipped}},
	{regexp.MustCompile(`^number of transactions retried: (\d+) \(`), []metric.Declaration{pgRetried}},
	{regexp.MustCompile(`^total number of retries: (\d+)$`), []metric.Declaration{pgRetries}},
	{regexp.MustCompile(`^number of transactions above the [\d.]+ ms latency limit: (\d+)/`),
		[]metric.Declaration{pgLate}},
	{regexp.MustCompile(`^latency average = ([\d.]+) ms$`), []metric.Declaration{pgAverage}},
	{regexp.MustCompile(`^latency stddev = ([\d.]+) ms$`), []metric.Declaration{pgStddev}},
	{regexp.MustCompile(`^rate limit schedule lag: avg ([\d.]+) \(max ([\d.]+)\) ms$`),
		[]metric.Declaration{pgLag, pgMostLag}},
	{regexp.MustCompile(`^initial connection time = ([\d.]+) ms$`), []metric.Declaration{pgConnect}},
	{regexp.MustCompile(`^average connection time = ([\d.]+) ms$`), []metric.Declaration{pgReconnect}},
}

// pgLeftOut are lines that have no figures, and the settings that the report repeats. What follows the last line of the
// whole is of single scripts and statements.
var pgLeftOut = regexp.MustCompile(`^(pgbench \(|transaction type: |scaling factor: |partition method: |` +
	`partitions: |query mode: |number of clients: |number of threads: |maximum number of tries: |duration: |` +
	`number of transactions per client: |number of (serialization|deadlock) failures: |starting vacuum|end\.$|` +
	`progress: [\d.]+ s, |latency average = [\d.]+ ms \(including failures\)$|` +
	`tps = [\d.]+ \(including connections establishing\)$|pghost: |cnsbench: )`)

// pgProgress is a line of progress with --progress-timestamp.
var pgProgress = regexp.MustCompile(`^progress: (\d{9,10})\.(\d{3}) s, ([\d.]+) tps, `)

// readLine takes the figures of one line, of several such lines those of the first: later ones are of single scripts.
// false: it has none.
func (p *pgbench) readLine(row string) bool {
	p.modern = p.modern || strings.HasPrefix(row, "maximum number of tries: ")
	p.measured = p.measured || strings.HasPrefix(row, "progress: ")
	if m := pgProgress.FindStringSubmatch(row); m != nil {
		p.scheduled = p.scheduled || strings.Contains(row, ", lag ")
		p.retries = p.retries || strings.Contains(row, " retried, ")
		p.addProgress(m)
		return true
	}
	for _, f := range pgFigures {
		m := f.line.FindStringSubmatch(row)
		if m == nil {
			continue
		}
		for i, d := range f.metrics {
			v, err := strconv.ParseFloat(m[i+1], 64)
			known := slices.ContainsFunc(p.res.Scalars, func(s metric.Scalar) bool { return s.Metric == d.Name })
			if err != nil || known {
				return known
			}
			if d.Unit == metric.Nanoseconds {
				v = math.Round(v * ms)
			}
			p.res.Scalars = append(p.res.Scalars, d.Scalar(v))
			p.report = p.report || d.Name == pgTPS.Name // it is the last line of the whole
			p.scheduled = p.scheduled || d.Name == pgLag.Name
			p.retries = p.retries || d.Name == pgRetries.Name
		}
		return true
	}
	return false
}

// addProgress adds a point of TPS; its time is the end of the interval.
func (p *pgbench) addProgress(m []string) {
	seconds, _ := strconv.ParseInt(m[1], 10, 64) // digits all
	thousandths, _ := strconv.ParseInt(m[2], 10, 64)
	tps, err := strconv.ParseFloat(m[3], 64)
	if err != nil || p.in.AtWall == nil {
		return
	}
	end, from := p.in.AtWall(seconds*int64(time.Second)+thousandths*int64(time.Millisecond)), p.reported
	if p.progress.Metric == "" {
		p.progress.Series = pgTPS.Series(int64(time.Second))
	}
	if p.reported = end; p.progress.n() == 0 || end <= from {
		from = end - op.Time(time.Second)
	}
	p.progress.add(from, end-from, tps)
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

// rows calls each for the rows of a log, and returns how many lines are none, with the first.
func (p *pgbench) rows(name string, each func(pgRow) bool) (unread int, first string, err error) {
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
			if len(text) > 0 && p.report {
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
			continue
		}
		if !each(r) {
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
		if _, _, err := p.rows(name, func(r pgRow) bool {
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
	t := newTransactions(start, p.scheduled)
	for _, name := range p.logs {
		unread, first, err := p.rows(name, func(r pgRow) bool {
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
	return t.results(p)
}
