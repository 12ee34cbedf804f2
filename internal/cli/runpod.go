package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
	"github.com/cnsbench/cnsbench/internal/runner/inputs"
	"github.com/cnsbench/cnsbench/internal/runner/podrunner"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// runInPod starts a runner in the user's namespace, prints its log, copies its bundle while it grows, and removes
// the runner.
func runInPod(ctx context.Context, s *streams, f *runFlags, on *cluster.Cluster, p *plan.Plan,
	files []plan.File) (err error) {
	if err := f.checkRunnerRights(ctx, s, on, p); err != nil {
		return err
	}
	packed, err := inputs.Pack(p, files[0].Name)
	if err != nil {
		return err
	}
	files = slices.Clone(files)
	for i := range files { // a cluster has its own
		files[i].Data = plan.WithoutSecrets(files[i].Data)
	}
	f.defaultOut(p.Name)
	id := newRunID()
	r := &podrunner.Runner{Cluster: on, Flags: f.Flags, Plan: p, Files: files, Inputs: packed, ID: id,
		Identity: on.NewIdentity(id), Log: s.err}
	// Before anything is created, so that a clean-up finds it whenever this command is killed.
	described := f.describe(id, p, files, op.NewClock(), "")
	described.Identity = r.Identity
	if err := bundle.Announce(f.Out, described); err != nil {
		return err
	}
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	if err := r.Own(ctx); err != nil {
		return failed(errors.Join(err, bundle.Withdraw(f.Out)))
	}
	defer func() { err = withLeft(err, r.Remove(context.WithoutCancel(ctx)), f.Out) }()
	if err := r.Start(ctx); err != nil {
		return failed(err)
	}
	visible.Fprintf(s.err, "runner: pod %s/%s\n", on.Namespace, r.Name())
	code, err := r.Follow(ctx)
	if err != nil && bundle.Announced(f.Out) { // nothing was copied
		return failed(err)
	}
	if err = errors.Join(err, s.present(f.Out, f.output)); err != nil {
		return failed(err)
	}
	if code == exitOK {
		return nil
	}
	return &exit{code: code}
}

// withLeft adds to the error of a run on a cluster what is left of it.
func withLeft(err, left error, out string) error {
	if left == nil {
		return err
	}
	left = fmt.Errorf("%w; run: cnsbench cleanup %s", left, shellWord(out))
	switch code := codeOf(err); code {
	case exitOK, exitSLO, exitInvalid:
		return &exit{exitLeft, left}
	default:
		return &exit{code, errors.Join(err, left)}
	}
}

// printResult prints a summary in the format of --output.
func printResult(s *streams, output string, sum *summary.Summary, page string) error {
	return s.print(output, sum, func() *table.Table { return table.FiguresOf(sum) }, func() error {
		err := terminal.Write(s.out, sum, terminalOptions(s.out))
		visible.Fprintf(s.out, "\nbundle: %s\nreport: %s\n", filepath.Dir(page), page)
		return err
	})
}

// checkRunnerRights finds out whether the ServiceAccount of the runner's pod has the rights that the plan needs. At
// a terminal it offers what --create-rbac does.
func (f *runFlags) checkRunnerRights(ctx context.Context, s *streams, on *cluster.Cluster, p *plan.Plan) error {
	if f.CreateRBAC {
		return nil
	}
	missing, account, err := podrunner.MissingRights(ctx, on, p)
	if err != nil || len(missing) == 0 {
		return err
	}
	lacks := fmt.Sprintf("ServiceAccount %s in namespace %s, which the runner's pod uses, lacks rights:\n  %s",
		account, on.Namespace, cluster.RightsText(missing))
	if s.atTerminal() {
		visible.Fprintf(s.err, "%s\nCreate a ServiceAccount with these rights for this run, and remove it afterwards? [y/N] ",
			lacks)
		answer, _ := bufio.NewReader(s.in).ReadString('\n') // end of input means no
		if f.CreateRBAC = strings.EqualFold(strings.TrimSpace(answer), "y"); f.CreateRBAC {
			return nil
		}
	}
	return fmt.Errorf("%s\nuse --create-rbac to create an account for this run, removed afterwards, or name one "+
		"that has the rights: spec.serviceAccountName (cnsbench doctor --rbac FILE prints them for an administrator)", lacks)
}

// atTerminal says whether the user can answer a question.
func (s *streams) atTerminal() bool {
	if s.terminal != nil {
		return s.terminal()
	}
	f, ok := s.in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
