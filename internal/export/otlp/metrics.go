package otlp

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// Figure is one value of a metric, or the summary of a distribution.
type Figure struct {
	Name, Unit string // the unit in UCUM
	At         time.Time
	Attributes map[string]string // empty values are left out
	Value      float64
	Summary    *Summary // instead of Value
}

// Summary of a distribution.
type Summary struct {
	Count     int64
	Sum       float64
	Quantiles []Quantile // ascending; 0 and 1 are the minimum and the maximum
}

// Quantile of a distribution.
type Quantile struct {
	Quantile float64 `json:"quantile"` // 0 to 1
	Value    float64 `json:"value"`
}

// The types below are OTLP's ExportMetricsServiceRequest in its JSON encoding.

type metricsRequestJSON struct {
	ResourceMetrics []resourceMetrics `json:"resourceMetrics"`
}

type resourceMetrics struct {
	Resource     resource       `json:"resource"`
	ScopeMetrics []scopeMetrics `json:"scopeMetrics"`
}

type scopeMetrics struct {
	Scope   scope           `json:"scope"`
	Metrics json.RawMessage `json:"metrics"` // a list of metricJSON
}

type metricJSON struct {
	Name    string      `json:"name"`
	Unit    string      `json:"unit,omitempty"`
	Gauge   *pointsJSON `json:"gauge,omitempty"`
	Summary *pointsJSON `json:"summary,omitempty"`
}

type pointsJSON struct {
	Points []pointJSON `json:"dataPoints"`
}

type pointJSON struct {
	Attributes []attribute `json:"attributes,omitempty"`
	Start      string      `json:"startTimeUnixNano,omitempty"`
	Time       string      `json:"timeUnixNano"`
	Value      *float64    `json:"asDouble,omitempty"` // of a gauge

	Count     string     `json:"count,omitempty"` // these are of a summary
	Sum       *float64   `json:"sum,omitempty"`
	Quantiles []Quantile `json:"quantileValues,omitempty"`
}

// Metrics returns figures of a run as a JSON list of metrics.
func Metrics(run *bundle.Run, figures []Figure) ([]byte, error) {
	list := []metricJSON{}
	for i := range figures {
		f := &figures[i]
		p := pointJSON{Time: strconv.FormatInt(f.At.UnixNano(), 10)}
		for _, key := range slices.Sorted(maps.Keys(f.Attributes)) {
			if v := f.Attributes[key]; v != "" {
				p.Attributes = append(p.Attributes, text(key, v))
			}
		}
		m := metricJSON{Name: f.Name, Unit: f.Unit}
		if s := f.Summary; s != nil {
			p.Start = strconv.FormatInt(run.Clock.Start.UnixNano(), 10)
			p.Count, p.Sum, p.Quantiles = strconv.FormatInt(s.Count, 10), &s.Sum, s.Quantiles
			m.Summary = &pointsJSON{[]pointJSON{p}}
		} else {
			p.Value = &f.Value
			m.Gauge = &pointsJSON{[]pointJSON{p}}
		}
		list = append(list, m)
	}
	return json.Marshal(list)
}

// MetricsRequest returns the body of a request to /v1/metrics with lists of metrics of a run.
func MetricsRequest(run *bundle.Run, lists [][]byte) ([]byte, error) {
	return json.Marshal(metricsRequestJSON{[]resourceMetrics{{Resource: resourceOf(run),
		ScopeMetrics: []scopeMetrics{{Scope: scopeOf(run), Metrics: joined(lists)}}}}})
}
