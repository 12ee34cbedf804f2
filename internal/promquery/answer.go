package promquery

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/op"
)

// read sets the values of a reading, or why it has none.
func (s *stream) read(value model.Value, r *op.QueryReading) {
	vector, ok := value.(model.Vector)
	if scalar, is := value.(*model.Scalar); is {
		vector, ok = model.Vector{{Value: scalar.Value}}, true
	}
	if !ok {
		r.Problem, r.Message = op.QueryBadAnswer, fmt.Sprintf("the result is a %s: want an instant vector or a scalar",
			typeOf(value))
		return
	}
	if len(vector) == 0 {
		r.Problem = op.QueryNoData
		return
	}
	slices.SortFunc(vector, func(a, b *model.Sample) int {
		switch {
		case a.Metric.Before(b.Metric):
			return -1
		case b.Metric.Before(a.Metric):
			return 1
		}
		return 0
	})
	for _, x := range vector {
		s.add(x, r)
	}
	if len(r.Values) == 0 {
		r.Problem = op.QueryNotFinite
	}
}

func typeOf(v model.Value) string {
	if v == nil {
		return "nothing"
	}
	return v.Type().String()
}

// add adds a series, unless its value is not finite or the query has too many.
func (s *stream) add(x *model.Sample, r *op.QueryReading) {
	v := float64(x.Value)
	if x.Histogram != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		r.LeftOut++
		return
	}
	key := x.Metric.String()
	id, known := s.ids[key]
	if !known && len(s.ids) == MaxSeries {
		r.LeftOut++
		return
	}
	one := op.QueryValue{Series: id, Value: v}
	if !known {
		one.Series, one.Labels = len(s.ids), map[string]string{}
		for name, value := range maps.All(x.Metric) {
			one.Labels[string(name)] = string(value)
		}
		s.ids[key] = one.Series
	}
	r.Values = append(r.Values, one)
}

// problemOf classifies an error of a request.
func problemOf(err error, late bool) op.QueryProblem {
	var answer *prometheus.Error
	switch {
	case late, errors.As(err, &answer) && (answer.Type == prometheus.ErrTimeout || answer.Type == prometheus.ErrCanceled):
		return op.QueryTimeout
	case errors.As(err, new(*url.Error)):
		return op.QueryUnreachable
	case answer == nil:
		return op.QueryBadAnswer
	case answer.Type == prometheus.ErrServer:
		return op.QueryFailed
	case answer.Type == prometheus.ErrBadResponse:
		return op.QueryBadAnswer
	}
	return op.QueryRejected
}

// maxMessage is the length of a message in bytes.
const maxMessage = 300

// signed adds the credentials to each request, and limits the answer.
type signed struct {
	http.RoundTripper
	authorization, rawQuery string
}

// RoundTrip implements http.RoundTripper.
func (s *signed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if s.authorization != "" {
		r.Header.Set("Authorization", s.authorization)
	}
	if s.rawQuery != "" {
		if r.URL.RawQuery != "" {
			r.URL.RawQuery += "&"
		}
		r.URL.RawQuery += s.rawQuery
	}
	answer, err := s.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{bounded.NewReader(answer.Body, bounded.Limits{Total: maxAnswer}), answer.Body}
	}
	return answer, err
}

// CloseIdleConnections lets http.Client close those of the transport.
func (s *signed) CloseIdleConnections() {
	if t, ok := s.RoundTripper.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}
