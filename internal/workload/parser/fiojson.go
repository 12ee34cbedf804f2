package parser

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// fioReport has the used fields of fio's JSON+ output (fio 3.x).
type fioReport struct {
	Version     string            `json:"fio version"`
	TimestampMs int64             `json:"timestamp_ms"` // wall clock when the report was written
	Global      map[string]string `json:"global options"`
	Jobs        []fioJob          `json:"jobs"`

	preamble  string // what fio printed before the JSON
	truncated bool
}

type fioJob struct {
	Name    string            `json:"jobname"`
	Error   int               `json:"error"`
	Options map[string]string `json:"job options"`
	UserCPU float64           `json:"usr_cpu"`
	SysCPU  float64           `json:"sys_cpu"`
	Read    fioDirection      `json:"read"`
	Write   fioDirection      `json:"write"`
	Trim    fioDirection      `json:"trim"`
	Sync    fioDirection      `json:"sync"`
	// Depths has the share of I/Os in percent at each number in flight.
	Depths map[string]float64 `json:"iodepth_level"`

	report *fioReport
}

type fioDirection struct {
	Bytes   int64      `json:"io_bytes"`
	IOs     int64      `json:"total_ios"`
	IOPS    float64    `json:"iops"`
	BytesPS float64    `json:"bw_bytes"`
	Runtime int64      `json:"runtime"` // ms, without the ramp; of the longest job where jobs are grouped
	Clat    fioLatency `json:"clat_ns"`
	Lat     fioLatency `json:"lat_ns"`
}

type fioLatency struct {
	Min  int64       `json:"min"`
	Max  int64       `json:"max"`
	Mean float64     `json:"mean"`
	N    int64       `json:"N"`
	Bins latencyBins `json:"bins"`
}

// directions of a job by metric.
func (j *fioJob) directions() map[string]*fioDirection {
	return map[string]*fioDirection{"read": &j.Read, "write": &j.Write, "trim": &j.Trim, "sync": &j.Sync}
}

// option of the job, else of the file's [global] section.
func (j *fioJob) option(name string) (string, bool) {
	if v, ok := j.Options[name]; ok {
		return v, true
	}
	v, ok := j.report.Global[name]
	return v, ok
}

// flag reads a boolean option, which without a value means yes.
func (j *fioJob) flag(name string, usual bool) bool {
	v, ok := j.option(name)
	if !ok {
		return usual
	}
	return v == "" || (v != "0" && v != "false")
}

// direct says whether the page cache is bypassed.
func (j *fioJob) direct() bool {
	return j.flag("direct", false) || !j.flag("buffered", true)
}

// runtime is the longest measured time of a direction.
func (j *fioJob) runtime() time.Duration {
	var ms int64
	for _, d := range j.directions() {
		ms = max(ms, d.Runtime)
	}
	return time.Duration(ms) * time.Millisecond
}

// ramp is the time at the start that fio leaves out of everything.
func (j *fioJob) ramp() time.Duration {
	v, ok := j.option("ramp_time")
	if !ok {
		return 0
	}
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

var errNotFio = errors.New("is not fio's JSON output")

// decodeFio reads one report. fio prints warnings before the JSON if both go to one file;
// they are kept. A report that ends early (fio was killed) is marked as truncated, and
// none of it is used.
func decodeFio(b []byte) (*fioReport, error) {
	start := 0
	if !bytes.HasPrefix(b, []byte("{")) {
		start = bytes.Index(b, []byte("\n{")) + 1
	}
	r := &fioReport{}
	if start == 0 && !bytes.HasPrefix(b, []byte("{")) {
		r.preamble = strings.TrimSpace(string(b))
		r.truncated = true
		return r, nil
	}
	err := json.NewDecoder(bytes.NewReader(b[start:])).Decode(r)
	preamble := strings.TrimSpace(string(b[:start]))
	var syntax *json.SyntaxError
	switch {
	case err == nil && r.Version == "":
		return nil, errNotFio
	case err == nil:
		r.preamble = preamble
	case isTruncated(err), errors.As(err, &syntax):
		return &fioReport{preamble: preamble, truncated: true}, nil
	default:
		return nil, fmt.Errorf("does not decode: %w", err)
	}
	for i := range r.Jobs {
		r.Jobs[i].report = r
	}
	return r, nil
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

// histogram returns the bins; nil without bins.
func (l *fioLatency) histogram() (*binned, error) {
	if l.Bins.err != nil || l.Bins.none() {
		return nil, l.Bins.err
	}
	return &l.Bins.binned, nil
}

func isTruncated(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}
