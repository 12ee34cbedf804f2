package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/workload"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// resolveWorkload resolves a library entry and renders one instance of each variant, so
// that errors in the entry are reported at load time.
func resolveWorkload(g *graph, n *node, path string, c *v1alpha1.CreateObjSpec) {
	defer func() {
		if n.unresolved() {
			n.metrics = nil
		}
	}()
	entry, ok := g.library.Get(c.Workload)
	if !ok {
		hint := hints.Suggest(c.Workload, g.library.Names())
		if len(g.unread) > 0 {
			hint = hints.Or(hint, "it is among the ConfigMaps of namespace "+strings.Join(g.unread, " or "))
		}
		g.Fail(path+".workload", hint, "workload %q not found in the library", c.Workload)
		return
	}
	unknownNulls(g, path, entry)
	w := &Workload{Entry: entry.Name, Origin: entry.Origin, SHA256: entry.SHA256(), Labels: c.Labels}
	if c.ObjectSpec != nil {
		if n.inline = inlineSpec(g, path, c); n.inline == nil {
			return
		}
	}
	variants := variantsOf(g.Report, path, c)
	if len(variants) == 0 {
		return
	}
	if n.out.Count *= len(variants); n.out.Count > maxInstances {
		g.Fail(path, fmt.Sprintf("at most %d", maxInstances),
			"one trigger would make %d instances: count times what varsList and matrix list", n.out.Count)
		return
	}
	var all []workload.Params
	for _, v := range variants {
		if params, ok := resolveVariant(g, n, w, path, c, entry, v); ok {
			all = append(all, params)
			w.Own = append(w.Own, v.own)
		}
	}
	if len(all) < len(variants) {
		return
	}
	n.variants = len(variants)
	w.Vars = common(varsOf(all))
	known := n.metrics != nil
	if w.Canary = canary(g.Report, n, path, c.Canary); !known {
		n.metrics = nil
	}
	w.Template, w.Params = entry, all
	n.out.Workload = w
}

// resolveVariant resolves the variables of one variant and renders an instance, so that
// errors are reported at load time. It returns false if it reported a problem.
func resolveVariant(g *graph, n *node, w *Workload, path string, c *v1alpha1.CreateObjSpec, entry *workload.Entry,
	v variant) (workload.Params, bool) {
	values, wrong := entry.Resolve(v.given)
	for _, e := range wrong {
		if e.Var == "" {
			g.Fail(path+".workload", e.Hint, "%s", e.Message)
			continue
		}
		badVar(g.Report, cmp.Or(v.paths[e.Var], path+".vars."+e.Var), e)
	}
	params := workload.Params{Vars: values, Action: n.out.Name, Count: n.out.Count, Labels: c.Labels,
		Engine: g.in.Capabilities.Engine, Cluster: g.classes.cluster, ToolsImage: g.in.ToolsImage,
		Image: g.in.Image, Configs: g.configs, RunID: "run"}
	if n.inline != nil {
		params.Object = n.inline.Vars
	}
	if len(wrong) > 0 {
		return params, false
	}
	sample, err := entry.Render(params)
	if err != nil {
		if !blameQuantities(g.Report, entry, params, v) {
			badEntry(g.Report, path, entry, err)
		}
		return params, false
	}
	if len(c.Phases) > 0 {
		if !resolvePhases(g, path, c, entry, v, &params) {
			return params, false
		}
		if sample, err = entry.Render(params); err != nil {
			badEntry(g.Report, path, entry, err)
			return params, false
		}
		n.phases = len(c.Phases) + 1
	}
	n.claims, n.pods = append(n.claims, sample.Claims...), n.pods+len(sample.Pods)
	checkClaims(g, path, v, n.claims[len(n.claims)-len(sample.Claims):])
	for _, o := range sample.Outputs {
		checkParser(g, n, path, o)
		if !slices.Contains(w.Outputs, Output(o)) {
			w.Outputs = append(w.Outputs, Output(o))
		}
	}
	if slices.ContainsFunc(w.Outputs, func(o Output) bool { return o.Script != "" }) {
		n.metrics = nil // the metrics of a script are known only from its output
	}
	for _, what := range sample.Expects {
		g.Warn(path+".workload", "",
			"workload %q refers to %s, which is not of its manifests: it must be in the run's namespace", entry.Name, what)
	}
	for i := range sample.Pods {
		warnOfToken(g, path+".workload", fmt.Sprintf("pod %q", sample.Pods[i].Name), &sample.Pods[i].Spec)
	}
	observable(g.Report, path, c, sample)
	warnOfSharing(g, path, c, sample)
	w.SyncGroup = syncGroup(g.Report, n, path, c, sample)
	return params, true
}

func varsOf(all []workload.Params) []map[string]string {
	var vars []map[string]string
	for _, p := range all {
		vars = append(vars, p.Vars)
	}
	return vars
}

// checkParser checks that the parser of a workload output exists, and adds the metrics
// that it produces to n.metrics and n.values.
func checkParser(g *graph, n *node, path string, o workload.Output) {
	if known := parser.Names(g.in.Parsers); o.Parser != "" && o.Script == "" && !slices.Contains(known, o.Parser) {
		g.Fail(path+".workload",
			fmt.Sprintf("built in: %s; else the name of a script of the entry, or none: the output is kept raw",
				strings.Join(known, ", ")),
			"parser %q not found", o.Parser)
		return
	}
	metrics := []string{metric.CanaryRead, metric.CanaryWrite}
	for _, d := range parser.Declared(o.Parser) {
		if operation, ok := metric.RateOf(d.Name); ok { // with or without a latency
			metrics = append(metrics, operation)
		}
		if d.Kind == metric.Distribution {
			metrics = append(metrics, d.Name)
		} else if !slices.Contains(n.values, d.Name) {
			n.values = append(n.values, d.Name)
		}
	}
	if n.inline != nil {
		metrics = append(metrics, n.inline.Metrics...)
	}
	for _, m := range metrics {
		if !slices.Contains(n.metrics, m) {
			n.metrics = append(n.metrics, m)
		}
	}
}

// inlineSpec resolves the objectSpec of a workload with Input.ObjectSpec. It returns nil
// if it reported a problem.
func inlineSpec(g *graph, path string, c *v1alpha1.CreateObjSpec) *workload.ResolvedSpec {
	if g.in.ObjectSpec == nil {
		g.Fail(path+".objectSpec", "", "object workloads are not supported here")
		return nil
	}
	return g.in.ObjectSpec(workload.SpecRequest{Path: path, Create: c, Engine: g.in.Capabilities.Engine,
		Cluster: g.in.Capabilities.Cluster, Seed: g.seed, File: g.Report})
}
