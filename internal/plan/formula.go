package plan

import (
	"fmt"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// resolveFormula resolves a rate whose API type implements schedule.Formula.
func resolveFormula(report *parse.Report, path string, r *v1alpha1.Rate, out *Rate) {
	f, name := formulaOf(r)
	if f == nil {
		return
	}
	path += "." + name
	if checked, ok := f.(interface {
		Wrong() (field, problem string)
	}); ok {
		if field, problem := checked.Wrong(); problem != "" {
			report.Fail(path+"."+field, "", "%s", problem)
			return
		}
	}
	out.Schedule = schedule.Closed{Formula: f}
}

// resolveLifetime resolves a rate that triggers once for each object.
func resolveLifetime(report *parse.Report, path string, spec *v1alpha1.LifetimeRateSpec, out *Rate) {
	life := schedule.Lifetime{Mean: positive(report, path+".mean", spec.Mean)}
	for i, q := range spec.Quantiles {
		life.Quantiles = append(life.Quantiles, q.Duration.Duration)
		if i > 0 && life.Quantiles[i] < life.Quantiles[i-1] {
			report.Fail(fmt.Sprintf("%s.quantiles[%d]", path, i), "", "%v is less than the one before", q.Duration.Duration)
			return
		}
	}
	if life.Expected() > 0 {
		out.Lifetime = &life
	}
}
