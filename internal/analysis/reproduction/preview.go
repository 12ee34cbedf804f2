package reproduction

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// Preview compares the facts of an earlier run with those that are known before a later one. Facts of the engine that
// are known only in a run are in Facts.OneSided.
func Preview(then *bundle.Bundle, now bundle.Environment, asked bundle.Run) (*Result, error) {
	was, err := Of(then)
	if err != nil {
		return nil, err
	}
	e, err := then.Environment()
	if err != nil {
		return nil, err
	}
	is, err := OfRun(&asked)
	if err != nil {
		return nil, err
	}
	machine, err := OfEnvironment(now)
	if err != nil {
		return nil, err
	}
	maps.Copy(is, machine)
	var unknown []string
	for name := range was.compared() {
		if _, ok := is[name]; !ok && strings.HasPrefix(name, "engine.") {
			unknown = append(unknown, name)
			delete(was, name)
		}
	}
	r := newResult([]*bundle.Bundle{then}, nil)
	r.Facts = CompareFacts(was, is, [2]int{e.Format, now.Format})
	r.Facts.OneSided = append(r.Facts.OneSided, unknown...)
	slices.Sort(r.Facts.OneSided)
	r.Sentences = []string{r.factSentence()}
	if n := len(unknown); n > 0 {
		r.Sentences = append(r.Sentences, fmt.Sprintf("%d facts of the engine and its drivers are known only in a run.", n))
	}
	return r, nil
}
