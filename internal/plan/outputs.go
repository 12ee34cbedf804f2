package plan

import (
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// checkOutputs checks spec.outputs, the destinations of results in addition to the bundle,
// and the references of actions to them.
func checkOutputs(report *parse.Report, spec *v1alpha1.BenchmarkSpec, onCluster bool) {
	var names []string
	files := map[string]string{}
	for i, o := range spec.Outputs {
		names = append(names, string(o.Name))
		path := fmt.Sprintf("spec.outputs[%d]", i)
		switch {
		case o.HTTPPostSpec != nil:
			checkURL(report, path+".httpPostSpec.url", o.HTTPPostSpec.URL, outputVariable)
		case o.ElasticsearchSpec != nil:
			checkURL(report, path+".elasticsearchSpec.url", o.ElasticsearchSpec.URL, outputVariable)
			checkCredentials(report, path+".elasticsearchSpec.credentials", o.ElasticsearchSpec.Credentials, onCluster,
				outputVariable)
		case o.OTLPSpec != nil:
			checkURL(report, path+".otlpSpec.url", o.OTLPSpec.URL, outputVariable)
			checkCredentials(report, path+".otlpSpec.credentials", o.OTLPSpec.Credentials, onCluster, outputVariable)
		case o.RemoteWriteSpec != nil:
			checkURL(report, path+".remoteWriteSpec.url", o.RemoteWriteSpec.URL, outputVariable)
			checkCredentials(report, path+".remoteWriteSpec.credentials", o.RemoteWriteSpec.Credentials, onCluster,
				outputVariable)
			if o.RemoteWriteSpec.Interval.Duration.Duration < time.Second {
				report.Fail(path+".remoteWriteSpec.interval", "1s or more", "too short: %v",
					o.RemoteWriteSpec.Interval.Duration.Duration)
			}
		case o.S3Spec != nil:
			checkEndpoint(report, path+".s3Spec.endpoint", o.S3Spec.Endpoint)
			checkCredentials(report, path+".s3Spec.credentials", o.S3Spec.Credentials, onCluster, outputVariable)
		case o.FileSpec != nil:
			checkOutputFile(report, path+".fileSpec.path", o.FileSpec, files)
		}
	}
	for i, a := range spec.Actions {
		if o := a.Outputs; o != nil && !slices.Contains(names, string(o.OutputName)) {
			report.Fail(fmt.Sprintf("spec.actions[%d].outputs.outputName", i), hints.Suggest(string(o.OutputName), names),
				"output %q not found", o.OutputName)
		}
	}
}

// outputVariable is the beginning of the environment variables for an output.
const outputVariable = "CNSBENCH_OUTPUT_<NAME>"

// checkCredentials reports credentials that the engine cannot read. variable is the beginning of the environment
// variables that have them otherwise.
func checkCredentials(report *parse.Report, path string, c *v1alpha1.OutputCredentials, onCluster bool,
	variable string) {
	switch {
	case c == nil:
	case c.SecretName != "" && !onCluster:
		instead := "file, or an environment variable: docs/reference/outputs.md#credentials"
		if variable != outputVariable {
			instead = "file, or the environment variable " + variable + "_AUTHORIZATION"
		}
		report.Fail(path+".secretName", instead,
			"there are no Secrets on engine local")
	case c.File != "" && onCluster:
		report.Fail(path+".file",
			"kubectl create secret generic NAME --from-literal=KEY=VALUE …, and secretName",
			"a file of this machine is not in the runner's pod")
	}
}

// OutputFiles are the files of an output, relative to the directory outputs of the bundle, by what they contain: the
// documents as JSON lines, or a table of cnsbench export as CSV.
func OutputFiles(f *v1alpha1.FileSpec) map[string]string {
	if f.Format != "csv" {
		return map[string]string{"documents": f.Path}
	}
	name := strings.TrimSuffix(f.Path, ".csv")
	return map[string]string{"ops": name + ".ops.csv", "figures": name + ".figures.csv"}
}

// checkOutputFile checks the path of an output; files has the outputs of the earlier files.
func checkOutputFile(report *parse.Report, path string, f *v1alpha1.FileSpec, files map[string]string) {
	const like = "such as results.jsonl: it is relative to the directory outputs of the bundle"
	hidden := func(element string) bool { return strings.HasPrefix(element, ".") }
	switch elements := strings.Split(f.Path, "/"); {
	case f.Path == "":
		return // reported by the schema check
	case strings.HasPrefix(f.Path, "/"):
		report.Fail(path, like, "an absolute path")
		return
	case slices.Contains(elements, ".."):
		report.Fail(path, like, "a path with .. could leave the bundle")
		return
	case strings.ContainsFunc(f.Path, unicode.IsControl) || !fs.ValidPath(f.Path) || slices.ContainsFunc(elements, hidden):
		report.Fail(path, like, "invalid path %q: want names separated by single slashes, none begins with a dot", f.Path)
		return
	case strings.HasSuffix(f.Path, ".tmp"):
		report.Fail(path, like, "the bundle uses names ending in .tmp for unfinished files")
		return
	}
	for _, file := range OutputFiles(f) {
		for other, of := range files {
			if file == other || strings.HasPrefix(file, other+"/") || strings.HasPrefix(other, file+"/") {
				report.Fail(path, "choose another path", "%s is used by the output at %s, which has %s", file, of, other)
				return
			}
		}
	}
	for _, file := range OutputFiles(f) {
		files[file] = path
	}
}

// checkURL reports a URL that is not valid for HTTP POST. The schema checks the scheme. variable is the beginning of
// the environment variables that have its secrets.
func checkURL(report *parse.Report, path, text, variable string) {
	like := "such as http://host:9200/index/_doc/"
	if variable == prometheusVariable {
		like = "such as http://host:9090"
	}
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
		report.Fail(path, "give them by the environment variable "+variable+"_AUTHORIZATION instead",
			"a URL with credentials would be kept in the bundle")
	case u.RawQuery != "" || u.ForceQuery:
		// A query may contain an API key, which cannot be recognized.
		report.Fail(path, "give it by the environment variable "+variable+"_QUERY instead",
			"the query of a URL would be kept in the bundle")
	case u.Fragment != "":
		report.Fail(path, like, "a server never sees the fragment %q of a URL", "#"+u.Fragment)
	case !validPort(u.Port()):
		report.Fail(path, like, "port %s does not exist", u.Port())
	}
}

// checkEndpoint reports a URL that is not valid for a store, which has no other place for credentials than the keys of
// its account.
func checkEndpoint(report *parse.Report, path, text string) {
	const like = "such as https://s3.example.com"
	u, err := url.Parse(text)
	switch {
	case err != nil:
		report.Fail(path, like, "this is not a URL")
	case u.Hostname() == "":
		report.Fail(path, like, "no host in %q", text)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		report.Fail(path, like, "an endpoint has neither credentials nor a query")
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
