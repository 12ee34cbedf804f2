package cosbench

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/object/model"
)

// Restore completes works that were decoded from JSON, in which a rate is only text. Works that no plan
// produces are an error.
func Restore(works []model.Work) error {
	for i := range works {
		w := &works[i]
		if w.Workers < 0 || w.FirstWorker < 0 || w.Of != 0 && w.FirstWorker+w.Workers > w.Of {
			return fmt.Errorf("work %q has an invalid number of workers", w.Name)
		}
		for j := range w.Ops {
			if o := &w.Ops[j]; o.Name == "" || w.Workers == 0 || o.Weight < 0 {
				return fmt.Errorf("work %q has an invalid operation", w.Name)
			}
		}
		if w.RateText == "" {
			continue
		}
		var err error
		if w.Rate, err = ParseRate(w.RateText); err != nil {
			return fmt.Errorf("work %q: %w", w.Name, err)
		}
	}
	return nil
}
