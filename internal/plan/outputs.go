package plan

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
)

// actionOutput checks the reference of an action to an output.
func (l *loader) actionOutput(n *info) {
	o := n.spec.Outputs
	if o == nil {
		return
	}
	var names []string
	for _, out := range l.spec.Outputs {
		names = append(names, string(out.Name))
	}
	if !slices.Contains(names, string(o.OutputName)) {
		l.fail(n.path+".outputs.outputName", suggest(string(o.OutputName), names), "output %q not found",
			o.OutputName)
	}
}

// outputs checks spec.outputs: destinations of results in addition to the bundle.
func (l *loader) outputs() {
	for i, o := range l.spec.Outputs {
		path := fmt.Sprintf("spec.outputs[%d]", i)
		switch {
		case o.HTTPPostSpec != nil:
			l.checkURL(path+".httpPostSpec.url", o.HTTPPostSpec.URL)
		case o.FileSpec != nil:
			l.warn(path+".fileSpec", "the results are in the bundle", "not carried out yet")
		}
	}
}

// checkURL reports a URL that is not valid for HTTP POST. The schema checks the scheme.
func (l *loader) checkURL(path, text string) {
	const like = "such as http://host:9200/index/_doc/"
	u, err := url.Parse(text)
	switch {
	case err != nil:
		// The message omits err: url.Error contains the text, which may have a password.
		l.fail(path, like, "this is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		// reported by the schema check
	case u.Hostname() == "":
		l.fail(path, like, "no host in %q", text)
	case u.User != nil:
		l.fail(path, "give them by the environment variable CNSBENCH_OUTPUT_<NAME>_AUTHORIZATION instead",
			"a URL with credentials would be kept in the bundle")
	case u.RawQuery != "" || u.ForceQuery:
		// A query may contain an API key, which cannot be recognized.
		l.fail(path, "give it by the environment variable CNSBENCH_OUTPUT_<NAME>_QUERY instead",
			"the query of a URL would be kept in the bundle")
	case u.Fragment != "":
		l.fail(path, like, "a server never sees the fragment %q of a URL", "#"+u.Fragment)
	case !validPort(u.Port()):
		l.fail(path, like, "port %s does not exist", u.Port())
	}
}

func validPort(port string) bool {
	n, err := strconv.Atoi(port)
	return port == "" || err == nil && n > 0 && n < 1<<16
}
