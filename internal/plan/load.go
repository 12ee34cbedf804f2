package plan

import (
	"cmp"
	"context"
	"strings"

	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/plan/validate"
	"github.com/cnsbench/cnsbench/internal/version"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// Load resolves the files to a plan. If there are problems, the plan is nil and
// Load returns all problems that it can find. Otherwise Plan.Warnings lists
// questionable settings. Load creates no objects. It is safe for concurrent use.
func Load(ctx context.Context, in Input) (*Plan, []Problem) {
	in.Image = cmp.Or(in.Image, "cnsbench/cnsbench:"+version.Version)
	in.ToolsImage = cmp.Or(in.ToolsImage, workload.Images(in.Image)+"/workload-tools:"+version.Version)
	report := &parse.Report{}
	p := stages(ctx, &in, report)
	if len(report.Problems) > 0 {
		return nil, parse.Sorted(report.Problems)
	}
	p.Warnings = parse.Sorted(report.Warnings)
	return p, nil
}

// stages takes the files through the stages: parse, default and validate, resolve, derive.
// It returns nil where a stage leaves nothing for the next.
func stages(ctx context.Context, in *Input, report *parse.Report) *Plan {
	library := baseLibrary(report, in.Library)
	if library == nil {
		return nil
	}
	docs := readDocuments(report, in)
	if docs.benchmark == nil {
		return nil
	}
	report.Document = docs.benchmark
	variables := func(name string) []string {
		entry, ok := library.Get(name)
		if !ok {
			return nil
		}
		return append([]string{}, entry.Variables()...)
	}
	set := func(ofLibrary bool) {
		var sets []string
		for _, s := range in.Set {
			if strings.HasPrefix(s, "spec.library") == ofLibrary {
				sets = append(sets, s)
			}
		}
		report.Add(parse.ApplySets(docs.benchmark, sets, variables)...)
	}
	set(true)
	unread := addSources(ctx, report, in, library) // before the other flags: they set variables of library workloads
	library.AddAll(&docs.entries)
	set(false)

	nulls := validate.Nulls(docs.benchmark)
	b := validate.Benchmark(ctx, report)
	if b == nil {
		return nil
	}
	g := newGraph(report, in, b)
	g.library, g.unread, g.configs, g.nulls = library, unread, docs.configs, nulls
	endpoints := endpointsOf(report, in, b)
	g.classes = newClasses(report, in, docs.classes, endpoints)
	g.classes.secrets = secretsOf(docs.secrets)
	p := resolve(g, b)
	p.Given, p.Endpoints, p.Secrets, p.SecretFiles = docs.given, endpoints, g.classes.secrets, filesOf(docs.secrets)
	derive(report, p, g.order)
	return p
}
