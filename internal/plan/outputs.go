package plan

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// checkOutputs checks spec.outputs, the destinations of results in addition to the bundle,
// and the references of actions to them.
func checkOutputs(report *parse.Report, spec *v1alpha1.BenchmarkSpec) {
	var names []string
	for i, o := range spec.Outputs {
		names = append(names, string(o.Name))
		path := fmt.Sprintf("spec.outputs[%d]", i)
		switch {
		case o.HTTPPostSpec != nil:
			checkURL(report, path+".httpPostSpec.url", o.HTTPPostSpec.URL)
		case o.FileSpec != nil:
			report.Warn(path+".fileSpec", "the results are in the bundle", "not supported yet, ignored")
		}
	}
	for i, a := range spec.Actions {
		if o := a.Outputs; o != nil && !slices.Contains(names, string(o.OutputName)) {
			report.Fail(fmt.Sprintf("spec.actions[%d].outputs.outputName", i), parse.Suggest(string(o.OutputName), names),
				"output %q not found", o.OutputName)
		}
	}
}

// checkURL reports a URL that is not valid for HTTP POST. The schema checks the scheme.
func checkURL(report *parse.Report, path, text string) {
	const like = "such as http://host:9200/index/_doc/"
	u, err := url.Parse(text)
	switch {
	case err != nil:
		// The message omits err: url.Error contains the text, which may have a password.
		report.Fail(path, like, "this is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		// reported by the schema check
	case u.Hostname() == "":
		report.Fail(path, like, "no host in %q", text)
	case u.User != nil:
		report.Fail(path, "give them by the environment variable CNSBENCH_OUTPUT_<NAME>_AUTHORIZATION instead",
			"a URL with credentials would be kept in the bundle")
	case u.RawQuery != "" || u.ForceQuery:
		// A query may contain an API key, which cannot be recognized.
		report.Fail(path, "give it by the environment variable CNSBENCH_OUTPUT_<NAME>_QUERY instead",
			"the query of a URL would be kept in the bundle")
	case u.Fragment != "":
		report.Fail(path, like, "a server never sees the fragment %q of a URL", "#"+u.Fragment)
	case !validPort(u.Port()):
		report.Fail(path, like, "port %s does not exist", u.Port())
	}
}

func validPort(port string) bool {
	n, err := strconv.Atoi(port)
	return port == "" || err == nil && n > 0 && n < 1<<16
}

// resolveMaxOutput resolves spec.maxOutput.
func resolveMaxOutput(report *parse.Report, given *v1alpha1.MaxOutput) (out MaxOutput) {
	if given == nil {
		return out // the schema sets a default
	}
	const path = "spec.maxOutput"
	out.PerInstance = outputBound(report, path+".perInstance", given.PerInstance)
	out.PerRun = outputBound(report, path+".perRun", given.PerRun)
	if out.PerInstance > out.PerRun && out.PerRun > 0 {
		report.Fail(path+".perRun", "raise it, or lower perInstance",
			"%s for all instances is less than %s for one", given.PerRun, given.PerInstance)
	}
	return out
}

func outputBound(report *parse.Report, path string, q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	switch v := q.Value(); {
	case v < minOutput:
		report.Fail(path, "such as 256Mi", "%s is less than the least, 64Ki", q)
	case v > maxOutput:
		report.Fail(path, "such as 256Mi", "%s is more than the most, 1Ti", q)
	default:
		return v
	}
	return 0
}

// Range of the limits in bytes. Below minOutput, even the normal messages of tools
// would be truncated. A bundle should never reach maxOutput.
const (
	minOutput = 64 << 10
	maxOutput = 1 << 40
)
