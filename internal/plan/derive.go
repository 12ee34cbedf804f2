package plan

import "github.com/cnsbench/cnsbench/internal/plan/parse"

// manyVolumes is the number of volumes above which the plan has a warning.
const manyVolumes = 1_000_000

// derive completes a resolved plan with what follows from it: its budget, with a warning of
// a large one, and the restarts for which it may never end.
func derive(report *parse.Report, p *Plan, nodes []*node) {
	p.Budget = budget(p, nodes)
	p.Restarts = endlessRestarts(report, p, nodes)
	if p.Budget.Volumes > manyVolumes {
		report.Warn("spec", "see the budget: cnsbench run --dry-run", "this makes up to %d volumes", p.Budget.Volumes)
	}
}
