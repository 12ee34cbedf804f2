package slo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"

	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/stats/knee"
)

// search returns the result of a capacity search of a stage. A rate without one above it that failed is a lower
// bound.
func (s *source) search(q expr.Query) (expr.Value, error) {
	name := q.Metric.Action + "." + string(q.Func)
	v, bounded := expr.Value{}, q.Func != expr.FindMax
	for _, x := range s.data.Scalars {
		switch {
		case x.Action != q.Metric.Action:
		case x.Metric == name:
			v.Number, v.N = x.Value, 1
		case x.Metric == name+".above":
			bounded = true
		}
	}
	if v.N == 0 && q.Func == expr.Knee {
		return s.kneeBeyond(q)
	}
	if v.N == 0 {
		return v, fmt.Errorf("%w: %s was not searched, or has no result", expr.ErrNoData, q)
	}
	v.High, v.AtLeast = v.Number, !bounded
	return v, nil
}

// maxFindings limits the file of a search.
const maxFindings = 16 << 20

// kneeBeyond returns the most workers that were tried as a lower bound, of a stage whose throughput still grew there.
func (s *source) kneeBeyond(q expr.Query) (expr.Value, error) {
	const name = "raw/cnsbench/scale-workers/scale-workers.json"
	none := fmt.Errorf("%w: %s was not searched, or has no result", expr.ErrNoData, q)
	if s.data.Bundle == nil {
		return expr.Value{}, none
	}
	f, err := s.data.Bundle.OpenFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return expr.Value{}, none
	}
	if err != nil {
		return expr.Value{}, err
	}
	defer f.Close() // only read
	var found struct {
		Stage string     `json:"stage"`
		Knee  *knee.Knee `json:"knee"`
	}
	if err := json.NewDecoder(io.LimitReader(f, maxFindings)).Decode(&found); err != nil {
		return expr.Value{}, fmt.Errorf("%s: %w", name, err)
	}
	if found.Stage != q.Metric.Action || found.Knee == nil || found.Knee.Workers != nil || len(found.Knee.Levels) == 0 {
		return expr.Value{}, none
	}
	most := found.Knee.Levels[len(found.Knee.Levels)-1].Workers // from the fewest up
	return expr.Value{Number: float64(most), AtLeast: true, High: math.Inf(1), N: 1}, nil
}
