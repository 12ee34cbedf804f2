package scrape

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/snappy"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of the messages of remote write 1.0 (prometheus.io/docs/specs/prw/remote_write_spec).
const (
	fieldSeries    protowire.Number = 1 // of a WriteRequest
	fieldLabel     protowire.Number = 1 // of a TimeSeries
	fieldSample    protowire.Number = 2 // of a TimeSeries
	fieldName      protowire.Number = 1 // of a Label
	fieldText      protowire.Number = 2 // of a Label
	fieldValue     protowire.Number = 1 // of a Sample
	fieldTimestamp protowire.Number = 2 // of a Sample
)

// maxSeries is the most series in one request: the default of Prometheus itself (max_samples_per_send).
const maxSeries = 2000

// staleNaN marks the end of a series.
const staleNaN uint64 = 0x7ff0000000000002

// Sampling passes the metrics at each interval to keep, as bodies of requests of remote write 1.0 in order of time.
// Each series has one sample of an interval, a request has at most 2000 series. now gives the time of a sample. stop
// passes the samples of the end, then the mark that the series have ended. keep is called by one goroutine at a time.
func (m *Metrics) Sampling(interval time.Duration, now func() time.Time, keep func(body []byte)) (stop func()) {
	end, ended, before := make(chan struct{}), sync.WaitGroup{}, time.Time{}
	next := func() time.Time { // timestamps have milliseconds
		if at := now(); at.After(before.Add(time.Millisecond)) {
			before = at
		} else {
			before = before.Add(time.Millisecond)
		}
		return before
	}
	ended.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				m.requests(next(), false, keep)
			case <-end:
				return
			}
		}
	})
	return func() {
		close(end)
		ended.Wait()
		m.requests(next(), false, keep)
		m.requests(next(), true, keep)
	}
}

// requests passes the bodies of the requests with the samples of an instant, or the marks of the end.
func (m *Metrics) requests(at time.Time, last bool, keep func([]byte)) {
	families, _ := m.registry.Gather() // an error is of metrics that conflict with each other: there are none
	w := writer{at: at.UnixMilli(), last: last}
	for _, f := range families {
		for _, x := range f.GetMetric() {
			w.metric(f, x)
		}
	}
	for series := range slices.Chunk(w.series, maxSeries) {
		var request []byte
		for _, s := range series {
			request = appendMessage(request, fieldSeries, s)
		}
		keep(snappy.Encode(nil, request))
	}
}

// writer encodes series with one sample each.
type writer struct {
	at     int64 // ms since the epoch
	last   bool
	series [][]byte
}

// metric adds the series of a metric: those of a histogram are its buckets, its sum and its count.
func (w *writer) metric(f *dto.MetricFamily, x *dto.Metric) {
	name := f.GetName()
	switch h := x.GetHistogram(); f.GetType() {
	case dto.MetricType_HISTOGRAM:
		for _, b := range h.GetBucket() {
			w.add(name+"_bucket", x, strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64), float64(b.GetCumulativeCount()))
		}
		w.add(name+"_bucket", x, "+Inf", float64(h.GetSampleCount()))
		w.add(name+"_sum", x, "", h.GetSampleSum())
		w.add(name+"_count", x, "", float64(h.GetSampleCount()))
	case dto.MetricType_COUNTER:
		w.add(name, x, "", x.GetCounter().GetValue())
	default:
		w.add(name, x, "", x.GetGauge().GetValue())
	}
}

// add adds a series with one sample. Labels are in order of their names; empty ones do not exist.
func (w *writer) add(name string, x *dto.Metric, le string, value float64) {
	labels := [][2]string{{"__name__", name}, {"le", le}}
	for _, l := range x.GetLabel() {
		labels = append(labels, [2]string{l.GetName(), l.GetValue()})
	}
	slices.SortFunc(labels, func(a, b [2]string) int { return cmp.Compare(a[0], b[0]) })
	var series, sample []byte
	for _, l := range labels {
		if l[1] == "" {
			continue
		}
		label := protowire.AppendString(protowire.AppendTag(nil, fieldName, protowire.BytesType), l[0])
		label = protowire.AppendString(protowire.AppendTag(label, fieldText, protowire.BytesType), l[1])
		series = appendMessage(series, fieldLabel, label)
	}
	bits := math.Float64bits(value)
	if w.last {
		bits = staleNaN
	}
	sample = protowire.AppendFixed64(protowire.AppendTag(nil, fieldValue, protowire.Fixed64Type), bits)
	sample = protowire.AppendVarint(protowire.AppendTag(sample, fieldTimestamp, protowire.VarintType), uint64(w.at))
	w.series = append(w.series, appendMessage(series, fieldSample, sample))
}

func appendMessage(b []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), message)
}
