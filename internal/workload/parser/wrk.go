package parser

import (
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// request is the operation of web servers.
const request = "request"

// wrkAdds says of what the latencies are that wrk prints.
const wrkAdds = " as wrk prints it, with the latencies that it adds"

// The metrics of wrk.
var (
	wrkRequest  = latencyOf(request, "requests until their whole answer is there (service), without what wrk adds")
	wrkRPS      = rateOf("rps", "answered requests per second; by second those in the log of nginx").Principal(1)
	wrkTransfer = bandwidthOf(request+metric.Bandwidth, "bytes of answers per second, with their headers")
	wrkBytes    = declare(request+metric.Transferred, metric.Bytes, metric.Quantity, "",
		"bytes of answers, with their headers")
	wrkOK       = countOf(request+metric.Completed, "requests that were answered with a status below 400")
	wrkFailed   = faultsOf(request+metric.Failed, "requests that were answered with a status of 400 or above")
	wrkConnects = faultsOf("errors.connect", "connections that failed")
	wrkReads    = faultsOf("errors.read", "connections that broke while wrk read")
	wrkWrites   = faultsOf("errors.write", "connections that broke while wrk wrote, or that a server refused")
	wrkTimeouts = faultsOf("errors.timeout", "answers that took longer than the timeout; they have no latency")
	wrkAverage  = timeOf("latency.average", metric.Level, "mean"+wrkAdds)
	wrkStddev   = timeOf("latency.stddev", metric.Statistic, "standard deviation"+wrkAdds)
	wrkMax      = timeOf("latency.max", metric.Greatest, "maximum"+wrkAdds)
	wrkP50      = timeOf("latency.p50", metric.Statistic, "50th percentile"+wrkAdds)
	wrkP75      = timeOf("latency.p75", metric.Statistic, "75th percentile"+wrkAdds)
	wrkP90      = timeOf("latency.p90", metric.Statistic, "90th percentile"+wrkAdds)
	wrkP99      = timeOf("latency.p99", metric.Statistic, "99th percentile"+wrkAdds)

	wrkMetrics = []metric.Declaration{wrkRequest, wrkRPS, wrkTransfer, wrkBytes, wrkOK, wrkFailed, wrkConnects, wrkReads,
		wrkWrites, wrkTimeouts, wrkAverage, wrkStddev, wrkMax, wrkP50, wrkP75, wrkP90, wrkP99}
)

// Wrk reads the stdout of wrk 4 with the script of the entry nginx-wrk (wrk.txt), its latencies (wrk.latency: "µs
// count") and when the server answered each request, in Unix seconds (wrk.served).
//
// Latencies count from when a request is sent: the basis is "service". wrk adds latencies to those that it measured,
// which are taken away here; see measured.
func Wrk(in Input) (Result, error) {
	w := &wrk{work: work{in: in}, latencies: map[int64]int64{}, answered: map[int64]int64{}, began: op.Never,
		ended: op.Never}
	return w.run("wrk", "there is no stdout of it: name its file (wrk.txt) among the outputs", w.read, w.results)
}

// results adds the metrics and warnings.
func (w *wrk) results() {
	switch {
	case w.complete:
		w.figures()
		w.latency()
	case w.reported:
		w.warn("figuresMissing", "the report has no line of the script of the entry nginx-wrk: there are no latencies, "+
			"and no numbers of answers and errors")
	default:
		w.warn("wrkTruncated", "wrk ended before its report")
	}
	if w.complete || w.reported {
		w.res.expect(wrkRPS, wrkAverage, wrkStddev, wrkMax, wrkP50, wrkP75, wrkP90, wrkP99)
	}
	w.rate()
}

// wrk is the work on one container's files.
type wrk struct {
	work
	reported bool // the last line of wrk's own report
	complete bool // the line of the script, after it

	requests, connections, micros, bytes, connects, reads, writes, timeouts, refused int64

	all int64 // latencies, with those that wrk added

	latencies map[int64]int64 // counts by µs, as wrk has them
	counted   int64           // in latencies
	answered  map[int64]int64 // numbers of answers by second of the run's clock
	began     op.Time         // the first answer
	ended     op.Time         // the last answer
}

// maxWrk is the limit of each file: 10^7 latencies.
const maxWrk = 128 << 20

func (w *wrk) read() (found bool, err error) {
	files := map[string]func(string){"wrk.txt": w.report, "wrk.latency": w.counts, "wrk.served": w.answers}
	err = w.walk(func(name string) error {
		read := files[path.Base(name)]
		if read == nil {
			return nil
		}
		found = found || path.Base(name) == "wrk.txt"
		text, _, err := w.text(name, maxWrk)
		read(string(text))
		return err
	}, ".txt", ".latency", ".served")
	return found, err
}

// wrkPercentiles are the metrics of percentiles by percent.
var wrkPercentiles = map[string]metric.Declaration{"50": wrkP50, "75": wrkP75, "90": wrkP90, "99": wrkP99}

// wrkLines are the lines of the report that are read.
var wrkLines = []linePattern[*wrk]{
	figureLine[*wrk](`^Requests/sec: +([\d.]+)$`, nil, wrkRPS),
	{re(`^Latency +(\S+) +(\S+) +(\S+) +\S+%$`), func(w *wrk, m []string) {
		for i, of := range []metric.Declaration{wrkAverage, wrkStddev, wrkMax} {
			w.printed(of, m[i+1])
		}
	}},
	{re(`^(50|75|90|99)% +(\S+)$`), func(w *wrk, m []string) { w.printed(wrkPercentiles[m[1]], m[2]) }},
	{re(`^Transfer/sec:`), func(w *wrk, _ []string) { w.reported = true }},
	{re(`^cnsbench: (\d+) requests by (\d+) connections in (\d+) us, (\d+) bytes, ` +
		`errors: connect (\d+), read (\d+), write (\d+), timeout (\d+), status (\d+); (\d+) latencies$`),
		func(w *wrk, m []string) {
			w.complete = true
			for i, n := range []*int64{&w.requests, &w.connections, &w.micros, &w.bytes, &w.connects, &w.reads, &w.writes,
				&w.timeouts, &w.refused, &w.all} {
				*n = int64(numberOf(m[i+1]))
			}
		}},
}

func (w *wrk) report(text string) {
	for row := range rows(text) {
		matched(w, wrkLines, row)
	}
}

// printed adds a time such as 1.21ms.
func (w *wrk) printed(of metric.Declaration, text string) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		w.scalar(of, float64(d))
	}
}

func (w *wrk) figures() {
	length := max(float64(w.micros), 1) / 1e6
	w.scalar(wrkTransfer, float64(w.bytes)/length)
	for _, f := range []struct {
		of metric.Declaration
		n  int64
	}{{wrkBytes, w.bytes}, {wrkOK, max(w.requests-w.refused, 0)}, {wrkFailed, w.refused}, {wrkConnects, w.connects},
		{wrkReads, w.reads}, {wrkWrites, w.writes}, {wrkTimeouts, w.timeouts}} {
		w.scalar(f.of, float64(f.n))
	}
	if w.requests == 0 {
		w.warn("wrkErrors", "no request was answered")
	}
	if w.connects+w.reads+w.writes+w.timeouts+w.refused > 0 {
		w.warn("wrkErrors", "of %d answered requests %d have a status of 400 or above, and %d took longer than the "+
			"timeout; %d connections failed, %d broke at a read, %d at a write", w.requests, w.refused, w.timeouts, w.connects,
			w.reads, w.writes)
	}
}

// counts reads the latencies.
func (w *wrk) counts(text string) {
	for row := range rows(text) {
		at, n, ok := strings.Cut(row, " ")
		us, err1 := strconv.ParseInt(at, 10, 64)
		count, err2 := strconv.ParseInt(n, 10, 64)
		if ok && err1 == nil && err2 == nil && us >= 0 && us < maxRunSeconds && count > 0 && count < maxNumber {
			w.latencies[us] = count
			w.counted += count
		}
	}
}

// measured returns the counts of latencies without those that wrk added (its "correction of coordinated omission",
// stats_correct in wrk.c): for each latency l of at least twice the expected interval e also l - e, l - 2e, … above
// e. So above e the count of l has all that was added for l + e, once.
func (w *wrk) measured() map[int64]int64 {
	perConnection := w.requests / max(w.connections, 1)
	if perConnection == 0 || w.micros/perConnection == 0 {
		return w.latencies // wrk adds nothing
	}
	e := w.micros / perConnection
	all := make(map[int64]int64, len(w.latencies))
	for l, n := range w.latencies {
		if l > e {
			n -= w.latencies[l+e]
		}
		if n != 0 {
			all[l] = n
		}
	}
	return all
}

// latency makes the histogram.
func (w *wrk) latency() {
	want := w.requests - w.timeouts
	if w.micros == 0 || want == 0 && w.counted == 0 {
		return
	}
	h := hist.New()
	for us, n := range w.measured() {
		if n < 0 {
			w.warn("latencyDoubtful", "wrk has fewer latencies of %d µs than it added: they are left out", us)
			return
		}
		if err := h.RecordN(us*1000, n); err != nil {
			w.warn("latencyDoubtful", "%v", err)
			return
		}
	}
	if h.N() != want || w.counted != w.all || want <= 0 {
		w.warn("latencyDoubtful", "there are %d latencies of %d requests, and of %d that wrk has %d: they are left out",
			h.N(), want, w.all, w.counted)
		return
	}
	from := w.in.Started
	if w.began.Known() {
		from = w.began
	}
	w.total(wrkRequest, "service", from, from+op.Time(min(w.micros, maxRunSeconds*1e6)*1000), h)
}

// answers reads when the server answered.
func (w *wrk) answers(text string) {
	for row := range rows(text) {
		unix, err := strconv.ParseFloat(row, 64)
		if err != nil || !(unix > 0 && unix < 2*maxRunSeconds) {
			continue
		}
		at := w.in.clock(int64(unix * 1e9))
		w.answered[int64(math.Floor(float64(at)/float64(time.Second)))]++
		if !w.began.Known() || at < w.began {
			w.began = at
		}
		w.ended = max(w.ended, at)
	}
}

// rate is the number of answers in each whole second, also where there is none, until the end of the report.
func (w *wrk) rate() {
	if !w.began.Known() {
		return
	}
	end := w.ended
	if w.complete {
		end = max(end, w.began+op.Time(min(w.micros, maxCells*1e6)*1000))
	}
	first, last := int64(w.began/1e9)+1, int64(end/1e9)
	if last-first > maxCells {
		w.warn("outputUnread", "the answers of the server are %d s apart: their rate is left out", last-first)
		return
	}
	for at := first; at < last; at++ {
		w.interval(wrkRPS, aSecond, op.Time(at)*aSecond, aSecond, float64(w.answered[at]))
	}
}
