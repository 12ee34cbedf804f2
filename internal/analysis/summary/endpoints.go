package summary

import (
	"strings"

	"github.com/cnsbench/cnsbench/internal/metric"
)

// Endpoint has the figures of one operation at one of several endpoints of object storage.
type Endpoint struct {
	Action   string `json:"action"`
	Endpoint string `json:"endpoint"` // HOST:PORT
	// Metric is that of the operation at the endpoint, such as read@HOST:PORT.
	Metric
	// Operation is its name, and Share the part of its successful operations; nil if none succeeded.
	Operation string   `json:"operation"`
	Share     *float64 `json:"share"`
	Verdict   string   `json:"verdict"`
}

// The verdicts on an endpoint, the first that holds.
const (
	EndpointDown    = "down"    // it served no operation
	EndpointOutage  = "outage"  // it did not serve for some time
	EndpointErrors  = "errors"  // more than one in a hundred operations failed, and twice the share of all endpoints
	EndpointSlow    = "slow"    // its median response is more than twice that of all endpoints together
	EndpointOrdered = "in line" // none of these
)

// Limits of the verdicts.
const (
	badShare   = 0.01
	leastSlow  = 30 // operations, of fewer of which a median says little
	timesWorse = 2
)

// endpoints returns the figures by endpoint, in the order of workloads.
func (s *Summary) endpoints() (list []Endpoint) {
	for i := range s.Workloads {
		w := &s.Workloads[i]
		whole := map[string]*Metric{}
		for j := range w.Metrics {
			whole[w.Metrics[j].Name] = &w.Metrics[j]
		}
		for _, m := range w.Metrics {
			operation, name, ok := metric.EndpointOf(m.Name)
			of := whole[operation]
			if !ok || of == nil || m.OK+m.Errors+m.Lost == 0 {
				continue
			}
			e := Endpoint{Action: w.Action, Endpoint: name, Operation: operation, Metric: m}
			if of.OK > 0 {
				share := float64(m.OK) / float64(of.OK)
				e.Share = &share
			}
			e.Verdict = s.verdictOn(&e, of)
			list = append(list, e)
		}
	}
	return list
}

// verdictOn judges an endpoint by the figures of all of them.
func (s *Summary) verdictOn(e *Endpoint, all *Metric) string {
	failed := func(m *Metric) float64 { return float64(m.Errors) / float64(max(1, m.OK+m.Errors)) }
	switch own, of := e.Latency.Median.Ns, all.Latency.Median.Ns; {
	case e.OK == 0:
		return EndpointDown
	case s.hadOutage(e):
		return EndpointOutage
	case failed(&e.Metric) > badShare && failed(&e.Metric) > timesWorse*failed(all):
		return EndpointErrors
	case e.OK >= leastSlow && own != nil && of != nil && *own > timesWorse**of:
		return EndpointSlow
	}
	return EndpointOrdered
}

// hadOutage reports whether the endpoint did not serve for a part of the stage.
func (s *Summary) hadOutage(e *Endpoint) bool {
	for _, o := range s.Outages {
		of := o.Instance == "" && (e.Action == o.Stage || strings.HasPrefix(e.Action, o.Stage+".")) ||
			o.Instance != "" && strings.HasPrefix(o.Instance, e.Action)
		if o.Endpoint == e.Endpoint && of {
			return true
		}
	}
	return false
}
