package parser

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/metric"
)

// fioReport is one document of fio's JSON output, of fio 2 or 3, in the units of fio 3.
type fioReport struct {
	Version     string
	TimestampMs int64 // wall clock when the report was written
	Global      map[string]string
	Jobs        []fioJob

	truncated bool
	messages  string // what fio printed beside its reports
}

type fioJob struct {
	Name  string
	Host  string // of fio --client; of the sum over all hosts fioAllClients
	Group int
	// Elapsed is in whole seconds since fio began.
	Elapsed int64
	Error   int   // errno that ended the job, or its first
	Errors  int64 // I/Os that failed, with continue_on_error; also those of a job that one ended
	Options map[string]string
	UserCPU float64
	SysCPU  float64
	// Depths has the share of I/Os in percent at each number in flight.
	Depths map[string]float64

	directions map[string]*fioDirection // by metric; all of fioNames are there
	report     *fioReport
}

type fioDirection struct {
	Bytes   int64
	IOs     int64
	IOPS    float64
	BytesPS float64
	Runtime int64 // ms, without the ramp; of the longest job where jobs are grouped
	Clat    fioLatency
	Lat     fioLatency
}

// fioLatency is in ns.
type fioLatency struct {
	Min, Max   int64
	Mean       float64
	N          int64
	Percentile map[string]float64
	Bins       latencyBins
}

const (
	fioMixed      = "mixed"       // reads, writes and trims together (unified_rw_reporting)
	fioAllClients = "All clients" // name of the entry with the sum over hosts
)

// fioNames are the keys of a job's figures.
var fioNames = []string{metric.Read, metric.Write, metric.Trim, metric.Sync, fioMixed}

// Fields that are known and left out.
var (
	fioReportLeftOut = []string{"timestamp", "time", "disk_util"}
	fioJobLeftOut    = []string{"eta", "desc", "port", "ctx", "majf", "minf", "iodepth_submit", "iodepth_complete",
		"latency_ns", "latency_us", "latency_ms", "latency_depth", "latency_target", "latency_percentile",
		"latency_window", "job_runtime", "job_start", "first_error", "steadystate", "block", "zone_resets"}
	fioDirectionLeftOut = []string{"io_kbytes", "short_ios", "drop_ios", "slat", "slat_ns", "bw_min", "bw_max", "bw_agg",
		"bw_mean", "bw_dev", "bw_samples", "iops_min", "iops_max", "iops_mean", "iops_stddev", "iops_samples", "prios"}
)

// option returns the first of the names of an option that the job has, else the file's [global] section.
func (j *fioJob) option(names ...string) (name, value string, ok bool) {
	for _, name := range names {
		for _, options := range []map[string]string{j.Options, j.report.Global} {
			if v, ok := options[name]; ok {
				return name, v, true
			}
		}
	}
	return "", "", false
}

func (j *fioJob) has(names ...string) bool {
	_, _, ok := j.option(names...)
	return ok
}

// flag reads a boolean option, which without a value means yes.
func (j *fioJob) flag(name string, usual bool) bool {
	_, v, ok := j.option(name)
	if !ok {
		return usual
	}
	return v != "0" && v != "false"
}

// direct says whether the page cache is bypassed.
func (j *fioJob) direct() bool {
	return j.flag("direct", false) || !j.flag("buffered", true)
}

// runtime is the longest measured time of a direction.
func (j *fioJob) runtime() time.Duration {
	var ms int64
	for _, d := range j.directions {
		ms = max(ms, d.Runtime)
	}
	return time.Duration(ms) * time.Millisecond
}

// ramp is the time at the start that fio leaves out of everything.
func (j *fioJob) ramp() time.Duration {
	_, v, _ := j.option("ramp_time")
	return fioTime(v)
}

// fioTime reads a duration in fio's notation: a number of seconds, or with a
// unit (fio(1), "Parameter types").
func fioTime(s string) time.Duration {
	s = strings.ToLower(strings.TrimSpace(s))
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyz")
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0
	}
	units := map[string]time.Duration{
		"": time.Second, "s": time.Second, "d": 24 * time.Hour, "h": time.Hour, "m": time.Minute,
		"ms": time.Millisecond, "msec": time.Millisecond, "us": time.Microsecond, "usec": time.Microsecond,
	}
	return time.Duration(n * float64(units[s[len(digits):]]))
}

// maxFioMessage limits a part of fio's messages, in bytes.
const maxFioMessage = 2000

var errNotFio = errors.New("is not fio's JSON output")

// fioOutput is what one file has.
type fioOutput struct {
	reports []*fioReport
	// between is what is not of a report: fio's messages, lines of a shell or of a log.
	between string
	// unknown are fields that this reader does not know, and missing those that it expects, each once.
	unknown, missing []string
	// partial is how many reports of --status-interval were left out.
	partial int
	err     error // the first of a report that does not decode
}

// fioDocument matches the begin of a document, or of a list of some.
var fioDocument = re(`(?m)^[ \t]*[\[{]`)

// isFio says whether a text that begins with a JSON object is fio's.
func isFio(text []byte) bool {
	return bytes.Contains(text, []byte(`"fio version"`)) || bytes.Contains(text, []byte(`"jobname"`))
}

// maxOpening is how much of a document decides whether it is fio's.
const maxOpening = 64 << 10

// opening is the begin of a document that does not decode, up to where another may begin.
func opening(text []byte) []byte {
	begin, _, _ := bytes.Cut(text[:min(len(text), maxOpening)], []byte("\n{"))
	return begin
}

// decodeFio reads the reports of one file: one after another, or as a JSON array. Of those that fio --status-interval
// wrote, the last one counts. A report that ends early (fio was killed) is marked as truncated, and none of it is used.
func decodeFio(text []byte) (*fioOutput, error) {
	out := &fioOutput{}
	var between []string
	other := false // there is JSON of something else
	note := func(b []byte) {
		if s := strings.TrimSpace(string(b)); s != "" && s != "," && s != "]" {
			between = append(between, bounded.Text(s, maxFioMessage))
		}
	}
	for len(text) > 0 {
		at := fioDocument.FindIndex(text)
		if at == nil {
			note(text)
			break
		}
		note(text[:at[0]])
		text = text[at[0]:]
		d := json.NewDecoder(bytes.NewReader(text))
		var document json.RawMessage
		err := d.Decode(&document)
		switch {
		case err == nil:
			if !out.add(document) {
				other = true
				note(document)
			}
			text = text[d.InputOffset():]
		case isTruncated(err), isFio(opening(text)):
			out.reports = append(out.reports, &fioReport{truncated: true})
			if !isTruncated(err) {
				note([]byte("invalid JSON: " + err.Error()))
			}
			text = nil
		default: // a line that only begins like JSON
			line, rest, _ := bytes.Cut(text, []byte("\n"))
			note(line)
			text = rest
		}
	}
	switch {
	case out.err != nil:
		return nil, fmt.Errorf("does not decode: %w", out.err)
	case other && len(out.reports) == 0:
		return nil, errNotFio
	}
	out.between = bounded.Text(strings.Join(between, "\n"), 4*maxFioMessage)
	out.finish()
	return out, nil
}

// add adds the reports of a document; false: it is something else.
func (o *fioOutput) add(document []byte) (found bool) {
	if bytes.HasPrefix(document, []byte("[")) {
		var list []json.RawMessage
		_ = json.Unmarshal(document, &list) // its syntax is valid
		for _, d := range list {
			found = o.add(d) || found
		}
		return found
	}
	if !isFio(document) {
		return false
	}
	r := o.report(document)
	if n := len(o.reports); n > 0 && r.continues(o.reports[n-1]) {
		o.reports = o.reports[:n-1]
		o.partial++
	}
	o.reports = append(o.reports, r)
	return true
}

// finish sorts the findings.
func (o *fioOutput) finish() {
	for _, r := range o.reports {
		r.messages = o.between
	}
	slices.Sort(o.unknown)
	slices.Sort(o.missing)
	o.unknown, o.missing = slices.Compact(o.unknown), slices.Compact(o.missing)
}

// report reads one document.
func (o *fioOutput) report(document []byte) *fioReport {
	r := &fioReport{}
	f := o.object("", document)
	f.need("fio version", &r.Version)
	if !f.read("timestamp_ms", &r.TimestampMs) { // fio 2 has only seconds
		f.need("timestamp", &r.TimestampMs)
		r.TimestampMs *= 1000
	}
	r.Global = f.options("global options")
	var jobs, clients []json.RawMessage
	f.read("jobs", &jobs)
	f.read("client_stats", &clients)
	for _, text := range slices.Concat(jobs, clients) {
		r.Jobs = append(r.Jobs, *o.job(r, text))
	}
	if len(r.Jobs) == 0 {
		o.missing = append(o.missing, "jobs")
	}
	f.done(fioReportLeftOut)
	return r
}

func (o *fioOutput) job(r *fioReport, text []byte) *fioJob {
	j := &fioJob{directions: map[string]*fioDirection{}, report: r}
	f := o.object("job", text)
	f.need("jobname", &j.Name)
	f.read("hostname", &j.Host)
	f.need("groupid", &j.Group)
	if j.Host == "" { // the entries of --client have none
		f.need("elapsed", &j.Elapsed)
	}
	f.need("error", &j.Error)
	f.read("total_err", &j.Errors)
	j.Options = f.options("job options")
	f.read("usr_cpu", &j.UserCPU)
	f.read("sys_cpu", &j.SysCPU)
	f.read("iodepth_level", &j.Depths)
	if j.Name == fioAllClients {
		j.Host = fioAllClients
	}
	for _, name := range fioNames {
		j.directions[name] = &fioDirection{}
		if text, ok := f.take(name); ok {
			j.directions[name] = o.direction(name, text)
		} else if (name == metric.Read || name == metric.Write) && f.raw[fioMixed] == nil {
			o.missing = append(o.missing, "job."+name)
		}
	}
	if j.ios() > 0 { // unified_rw_reporting=both: their sum is known
		j.directions[fioMixed] = &fioDirection{}
	}
	f.done(fioJobLeftOut)
	return j
}

// direction reads the figures of one direction. Those of syncs are latencies alone.
func (o *fioOutput) direction(name string, text []byte) *fioDirection {
	d := &fioDirection{}
	f := o.object("job."+name, text)
	f.need("total_ios", &d.IOs)
	if name == metric.Sync {
		f.latency("lat_ns", &d.Lat)
		f.done(nil)
		return d
	}
	f.need("io_bytes", &d.Bytes)
	f.need("iops", &d.IOPS)
	f.need("runtime", &d.Runtime)
	if _, three := f.raw["io_kbytes"]; f.raw["bw_bytes"] == nil && !three { // fio 2: KiB and KiB/s
		f.need("bw", &d.BytesPS)
		d.BytesPS, d.Bytes = d.BytesPS*1024, d.Bytes*1024
	} else if f.need("bw_bytes", &d.BytesPS) {
		delete(f.raw, "bw")
	}
	f.either("clat", d.IOs, &d.Clat)
	f.either("lat", d.IOs, &d.Lat)
	f.done(fioDirectionLeftOut)
	return d
}

// either reads a latency of a number of I/Os: of fio 2 in µs, without a number of values, or of fio 3.
func (f *fioObject) either(key string, ios int64, to *fioLatency) {
	if old, ok := f.take(key); ok {
		f.fail(key, microseconds(old, ios, to))
	} else if f.raw[key+"_ns"] != nil || ios > 0 {
		f.latency(key+"_ns", to)
	}
}

// latency reads a latency of fio 3.
func (f *fioObject) latency(key string, to *fioLatency) {
	text, ok := f.take(key)
	if !ok {
		f.out.missing = append(f.out.missing, f.name(key))
		return
	}
	l := f.out.object(f.name(key), text)
	l.need("min", &to.Min)
	l.need("max", &to.Max)
	l.need("mean", &to.Mean)
	l.need("N", &to.N)
	l.read("percentile", &to.Percentile)
	l.read("bins", &to.Bins)
	l.done([]string{"stddev"})
}

// microseconds reads a latency of fio 2.
func microseconds(text []byte, n int64, to *fioLatency) error {
	var l struct {
		Min, Max, Mean float64
		Percentile     map[string]float64
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	const µs = 1000
	*to = fioLatency{Min: int64(l.Min * µs), Max: int64(l.Max * µs), Mean: l.Mean * µs, N: n, Percentile: l.Percentile}
	if l.Mean == 0 { // it was not measured
		to.N = 0
	}
	maps.DeleteFunc(to.Percentile, func(key string, _ float64) bool { // unused places of fio 2's list
		p, err := strconv.ParseFloat(key, 64)
		return err != nil || p == 0
	})
	for key := range to.Percentile {
		to.Percentile[key] *= µs
	}
	return nil
}

// continues says whether a report is a later one of the same run, as --status-interval writes them: the same jobs, no
// count decreased, and the time between the reports passed for a job that ran.
func (r *fioReport) continues(before *fioReport) bool {
	if r.Version != before.Version || len(r.Jobs) != len(before.Jobs) || !maps.Equal(r.Global, before.Global) {
		return false
	}
	const slack = 700 * time.Millisecond
	passed, ran := time.Duration(r.TimestampMs-before.TimestampMs)*time.Millisecond, time.Duration(0)
	for i := range r.Jobs {
		a, b := &before.Jobs[i], &r.Jobs[i]
		if a.Name != b.Name || a.Host != b.Host || a.Group != b.Group || a.Elapsed > b.Elapsed ||
			!maps.Equal(a.Options, b.Options) {
			return false
		}
		for name, x := range a.directions {
			y := b.directions[name]
			if x.IOs > y.IOs || x.Runtime > y.Runtime {
				return false
			}
			ran = max(ran, time.Duration(y.Runtime-x.Runtime)*time.Millisecond)
		}
	}
	return passed >= 0 && (passed <= slack || passed-ran <= slack)
}

// fioObject reads an object field by field. What is left in raw in the end is not known to the reader.
type fioObject struct {
	at  string
	raw map[string]json.RawMessage
	out *fioOutput
}

func (o *fioOutput) object(at string, text []byte) *fioObject {
	f := &fioObject{at: at, out: o}
	if err := json.Unmarshal(text, &f.raw); err != nil && o.err == nil {
		o.err = fmt.Errorf("%s: %w", cmp.Or(at, "report"), err)
	}
	return f
}

func (f *fioObject) name(key string) string { return strings.TrimPrefix(f.at+"."+key, ".") }

// fail keeps the error of a field.
func (f *fioObject) fail(key string, err error) {
	if err != nil && f.out.err == nil {
		f.out.err = fmt.Errorf("%s: %w", f.name(key), err)
	}
}

func (f *fioObject) take(key string) (json.RawMessage, bool) {
	text, ok := f.raw[key]
	delete(f.raw, key)
	return text, ok
}

// read reads a field; false: it is absent.
func (f *fioObject) read(key string, to any) bool {
	text, ok := f.take(key)
	if !ok {
		return false
	}
	f.fail(key, json.Unmarshal(text, to))
	return string(text) != "null"
}

// need reads a field whose absence is a finding.
func (f *fioObject) need(key string, to any) bool {
	ok := f.read(key, to)
	if !ok {
		f.out.missing = append(f.out.missing, f.name(key))
	}
	return ok
}

// options reads options, whose values are strings.
func (f *fioObject) options(key string) map[string]string {
	var raw map[string]any
	f.read(key, &raw)
	list := map[string]string{}
	for k, v := range raw {
		list[k] = fmt.Sprint(v)
	}
	return list
}

// done reports what is left.
func (f *fioObject) done(leftOut []string) {
	for key := range f.raw {
		if !slices.Contains(leftOut, key) {
			f.out.unknown = append(f.out.unknown, f.name(key))
		}
	}
}

// latencyBins are the bins of a latency: {"midpoint in ns": count, …}.
type latencyBins struct {
	binned
	err error // of the first bin that is not valid; the others are read
}

func (b *latencyBins) none() bool { return len(b.counts) == 0 && b.err == nil }

// UnmarshalJSON reads an object whose syntax is valid. It is most of the work of reading a report, and does without a
// map of strings.
func (b *latencyBins) UnmarshalJSON(text []byte) error {
	*b = latencyBins{}
	for {
		_, rest, found := bytes.Cut(text, []byte(`"`))
		if !found {
			return nil
		}
		key, rest, _ := bytes.Cut(rest, []byte(`"`))
		end := bytes.IndexAny(rest, ",}")
		if end < 0 {
			return nil // null, or a value that is not an object
		}
		count := bytes.Trim(rest[:end], ": \t\r\n")
		text = rest[end:]
		if err := b.bin(string(key), string(count)); err != nil && b.err == nil {
			b.err = err
		}
	}
}

func (b *latencyBins) bin(key, count string) error {
	mid, err := strconv.ParseInt(key, 10, 64)
	if err != nil {
		return fmt.Errorf("invalid latency bin %q: want ns", key)
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return fmt.Errorf("latency bin %q: invalid count %s", key, count)
	}
	if err := b.add(mid, n); err != nil {
		return fmt.Errorf("latency bin %q: %w", key, err)
	}
	return nil
}

func isTruncated(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// findings are what a reader of the figures must know of the file, beside fio's own messages.
func (o *fioOutput) findings() (list []string) {
	if len(o.unknown) > 0 {
		list = append(list, "fields of fio that this program does not know are left out: "+strings.Join(o.unknown, ", "))
	}
	if len(o.missing) > 0 {
		list = append(list, "fields are missing: "+strings.Join(o.missing, ", "))
	}
	return list
}
