// Package validate applies the defaults and the schema of the API, with the libraries of
// the Kubernetes API server, and decodes documents into the types of the API.
package validate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// Benchmark applies the defaults and the schema to the Benchmark of a report, in place,
// and decodes it. It reports all problems and sets report.Faulty. With problems it
// returns the part that is valid, so that later stages report theirs at once, or nil if
// there is none.
func Benchmark(ctx context.Context, report *parse.Report) *v1alpha1.Benchmark {
	c, err := benchmarkChecker()
	if err != nil {
		report.Add(parse.Problem{Message: err.Error()})
		return nil
	}
	report.Faulty = map[string]bool{}
	if long := c.tooMany(report.Document); len(long) > 0 {
		report.Add(long...)
		return nil
	}
	for _, p := range c.apply(ctx, report.Document) {
		report.Add(p)
		report.Faulty[p.Path] = true
	}
	b := &v1alpha1.Benchmark{}
	if err := into(report.Value, b); err != nil {
		if len(report.Problems) == 0 {
			locate(report, err)
			return nil
		}
		b = &v1alpha1.Benchmark{}
		if into(withoutFaulty(report, c), b) != nil {
			return nil
		}
	}
	if b.Name == "" {
		report.Fail("metadata", "metadata: {name: …}", "metadata.name is missing")
	}
	if len(b.Name) > validation.DNS1123SubdomainMaxLength {
		report.Fail("metadata.name", "", "%s", tooLong(b.Name, validation.DNS1123SubdomainMaxLength))
	} else if b.Name != "" && len(validation.IsDNS1123Subdomain(b.Name)) > 0 {
		report.Fail("metadata.name", "small letters, digits, dashes and dots, a letter or digit first and last",
			"%q cannot be a name", b.Name)
	}
	return b
}

// withoutFaulty returns a copy of the Benchmark in which fields with schema
// problems are removed or have their defaults.
func withoutFaulty(report *parse.Report, c *checker) map[string]any {
	value := runtime.DeepCopyJSON(report.Value)
	rest := &parse.Document{Value: value}
	for _, path := range slices.Sorted(maps.Keys(report.Faulty)) {
		path = parse.Normal(path)
		step := path[strings.LastIndexByte(path, '.')+1:]
		switch around := rest.At(parse.Parent(path)).(type) {
		case map[string]any:
			delete(around, step)
		case []any:
			if i, err := strconv.Atoi(step); err == nil && i < len(around) {
				around[i] = nil
			}
		}
	}
	defaulting.Default(value, c.structural)
	return value
}

func into(value any, typed any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, typed)
}

// locate reports the part of the spec that the schema accepts but the Go types do
// not, such as a duration of ten thousand years.
func locate(report *parse.Report, err error) {
	spec, _ := report.Value["spec"].(map[string]any)
	found := false
	try := func(path string, v any, typed any) {
		if e := into(v, typed); e != nil {
			report.Fail(path, "", "%v", e)
			found = true
		}
	}
	for _, key := range []string{"actions", "rates", "outputs", "slos", "library"} {
		list, _ := spec[key].([]any)
		for i, v := range list {
			types := map[string]any{"actions": &v1alpha1.Action{}, "rates": &v1alpha1.Rate{},
				"outputs": &v1alpha1.Output{},
				"slos":    &v1alpha1.SLO{}, "library": &v1alpha1.LibrarySource{}}
			try(fmt.Sprintf("spec.%s[%d]", key, i), v, types[key])
		}
	}
	for _, key := range []string{"runtime", "gracePeriod"} {
		if v, ok := spec[key]; ok {
			try("spec."+key, v, &v1alpha1.Duration{})
		}
	}
	if !found {
		report.Fail("", "", "%v", err)
	}
}
