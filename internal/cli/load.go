package cli

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver/inject"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/object/metrics"
	"github.com/cnsbench/cnsbench/internal/object/objectspec"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/run"
	"github.com/cnsbench/cnsbench/internal/runner/inputs"
	"github.com/cnsbench/cnsbench/internal/runner/runflags"
	"github.com/cnsbench/cnsbench/internal/storagedir"
	"github.com/cnsbench/cnsbench/internal/study"
	"github.com/cnsbench/cnsbench/internal/visible"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// load reads and resolves the files; for engine kubernetes against the cluster, which it returns. It prints warnings,
// and all problems if there are any.
func load(ctx context.Context, s *streams, f *runFlags, names []string) (
	*plan.Plan, []plan.File, *cluster.Cluster, error) {
	files, err := readFiles(s, names)
	if err != nil {
		return nil, nil, nil, err
	}
	p, on, err := loadFiles(ctx, s, f, names, files)
	return p, files, on, err
}

// loadFiles resolves files that are already read; names[0] is the path beside which the files are that they name.
func loadFiles(ctx context.Context, s *streams, f *runFlags, names []string, files []plan.File) (
	*plan.Plan, *cluster.Cluster, error) {
	var err error
	sets := f.Set
	var design *study.Design
	if !f.trial {
		if design, sets, err = firstCell(s, files, f.Set); err != nil {
			return nil, nil, err
		}
	}
	named, err := inputs.NewResolver(names[0], f.Files)
	if err != nil {
		return nil, nil, err
	}
	in := plan.Input{Files: files, Set: sets, Folder: named.Folder, Open: named.Open,
		Seed: drawSeed(), Image: f.Image, ObjectSpec: objectspec.Resolve, Parsers: parsers(), Precondition: f.precondition,
		Library: f.library}
	if f.InCluster || f.alone { // an object of the API has no files beside it
		in.Folder, in.Open = nil, nil
	}
	e, err := engineOf(f.Engine)
	if err != nil {
		return nil, nil, err
	}
	in.Capabilities = e.capabilities
	on, err := e.prepare(ctx, s, f, &in)
	if err != nil {
		return nil, nil, err
	}
	p, problems := plan.Load(ctx, in)
	if len(problems) > 0 {
		f.printProblems(s, problems)
		return nil, nil, &problemsError{strings.Join(names, ", "), problems}
	}
	f.printWarnings(s, p.Warnings)
	if design != nil {
		if err = design.CheckNames(p, design.Cells[0].Without); err != nil {
			err = fmt.Errorf("%s: %w", design.File, err)
		}
	}
	return p, on, err
}

// printProblems prints problems, unless the command prints them as JSON.
func (f *runFlags) printProblems(s *streams, problems []plan.Problem) {
	if !f.quiet {
		fmt.Fprint(s.err, lines(problems))
	}
}

// printWarnings prints warnings, unless the command prints them as JSON.
func (f *runFlags) printWarnings(s *streams, warnings []plan.Problem) {
	if f.quiet {
		return
	}
	for _, w := range parse.Collapsed(warnings) {
		visible.Fprintln(s.err, "warning:", w)
	}
}

// parsers of workloads' outputs, beside the built-in ones.
func parsers() map[string]parser.Func { return map[string]parser.Func{"object": metrics.Parse} }

// planOn connects to the cluster and adds its classes and libraries to a plan's input. An offline command only warns
// if there is no cluster.
func (f *runFlags) planOn(ctx context.Context, s *streams, in *plan.Input) (*cluster.Cluster, error) {
	if err := f.checkKubernetes(); err != nil || f.alone {
		return nil, err
	}
	on, wrong := cluster.Options(f.Cluster).Connect() // sends no request yet
	err := wrong
	if err == nil {
		in.Classes, err = on.Classes(ctx)
	}
	switch {
	case err == nil:
		in.ConfigMaps = on.Libraries
		if unread := in.Classes.Unread(); f.offline && len(unread) > 0 {
			visible.Fprintf(s.err, "warning: %s of the cluster may not be read, and are not checked\n",
				strings.Join(unread, " and "))
		}
		return on, nil
	case f.offline:
		visible.Fprintf(s.err, "warning: classes and libraries are not checked, because the cluster cannot be reached: %v\n", err)
		return nil, nil
	case wrong != nil:
		return nil, wrong
	}
	return nil, failed(cluster.Explain(on.Config, err))
}

// substitutes are the drivers that replace those which need root, for other users.
func substitutes() (with map[string]string, reason string) {
	if os.Geteuid() == 0 {
		return nil, ""
	}
	with = map[string]string{}
	for _, b := range csidriver.Backends() {
		if csidriver.Requirements(b).Root {
			with[csidriver.DriverName(b)] = csidriver.DriverName("hostdir")
		}
	}
	return with, "you are not root"
}

// missingPrograms names the programs that the drivers and workloads need and that this machine lacks.
func missingPrograms(p *plan.Plan) error {
	missing, err := missingInWorkloads(p)
	if err != nil {
		return err
	}
	for name, sc := range p.StorageClasses {
		b, ours := strings.CutSuffix(sc.Provisioner, ".csi.cnsbench.dev")
		if _, external := p.Endpoints[sc.Provisioner]; !ours || external {
			continue
		}
		for _, m := range csidriver.Requirements(b).Missing() {
			missing = append(missing, fmt.Sprintf("StorageClass %s: driver %s needs %s: apt-get install %s",
				name, sc.Provisioner, m.Name, m.Package))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return errors.New(strings.Join(missing, "\n"))
}

func missingInWorkloads(p *plan.Plan) (missing []string, err error) {
	err = eachPod(p, func(action string, one *corev1.Pod) {
		for _, m := range pod.Missing(one) {
			missing = append(missing, fmt.Sprintf("action %s: %v", action, m))
		}
	})
	return missing, err
}

// programsOf are the files of the programs that the workloads of a plan start on this machine, by name.
func programsOf(p *plan.Plan) (map[string]string, error) {
	all := map[string]string{}
	err := eachPod(p, func(_ string, one *corev1.Pod) { maps.Copy(all, pod.Programs(one)) })
	return all, err
}

// eachPod renders the pods of the first instance of each workload.
func eachPod(p *plan.Plan, do func(action string, one *corev1.Pod)) error {
	for _, a := range p.Actions {
		if a.Workload == nil {
			continue
		}
		w, err := a.Workload.Render("", 0)
		if err != nil {
			return fmt.Errorf("action %s: %w", a.Name, err)
		}
		for i := range w.Pods {
			do(a.Name, &w.Pods[i].Pod)
		}
	}
	return nil
}

func drawSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:])                        // never fails
	return binary.LittleEndian.Uint64(b[:]) >> 11 // exact as a JSON number
}

// facts are what a bundle has of a plan.
type facts = run.Facts

// recorded are the flags that shape a run, for its bundle.
func (f *runFlags) recorded() []string {
	given := f.Flags
	if given.StorageDir == storagedir.Default() {
		given.StorageDir = ""
	}
	return given.Args(runflags.Record)
}

// injection reads and checks --inject, which is a file or its text, and returns the text.
func (f *runFlags) injection() (string, error) {
	if f.Inject == "" {
		return "", nil
	}
	if _, err := inject.Load(f.Inject, csidriver.RPCs()); err != nil {
		return "", fmt.Errorf("--inject: %w", err)
	}
	if b, err := readFile(f.Inject); err == nil {
		return string(b), nil
	}
	return f.Inject, nil
}

// printBudget prints the result of --dry-run.
func (f *runFlags) printBudget(s *streams, p *plan.Plan) error {
	room, err := f.room(p)
	if err != nil {
		return failed(err)
	}
	b := p.Budget
	value := struct {
		plan.Budget
		Storage *storagedir.Room `json:",omitempty"`
	}{b, room}
	return s.print(f.output, value, func() *table.Table { return budgetTable(&b) }, func() error {
		return writeBudget(s, p, room)
	})
}

// writeBudget prints the result of --dry-run as text.
func writeBudget(s *streams, p *plan.Plan, room *storagedir.Room) error {
	b := p.Budget
	atLeast := ""
	if len(b.Open) > 0 {
		atLeast = " at least"
	}
	visible.Fprintf(s.out, "%s would create%s:\n", p.Name, atLeast)
	w := tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)
	visible.Fprintf(w, "  volumes\t%d\t%s requested\n", b.Volumes, bytes(b.Bytes))
	pods := ""
	if p.Cluster {
		pods = "\tof workloads and volumes, without the runner's"
	}
	visible.Fprintf(w, "  snapshots\t%d\n  pods\t%d%s\n  operations\t%d\n", b.Snapshots, b.Pods, pods, b.Ops)
	_ = w.Flush()
	for _, open := range b.Open {
		visible.Fprintf(s.out, "  and by %s\n", open)
	}
	if room != nil {
		room.Print(s.out)
	}
	printPhases(s, p)
	if p.Runtime > 0 {
		visible.Fprintf(s.out, "runtime: %v from the barrier, then up to %v for what is in flight\n", p.Runtime, p.Grace)
	} else {
		visible.Fprintf(s.out, "runtime: until its workloads end, or its rates where it has none\n")
	}
	if err := writeObjectBudgets(s.out, b.Objects); err != nil {
		return err
	}
	visible.Fprintln(s.out, "nothing was created")
	return nil
}

// printPhases prints the phases of workloads.
func printPhases(s *streams, p *plan.Plan) {
	for _, a := range p.Benchmark.Spec.Actions {
		if a.CreateObjSpec == nil {
			continue
		}
		for i, ph := range a.CreateObjSpec.Phases {
			var vars []string
			for _, name := range slices.Sorted(maps.Keys(ph.Vars)) {
				vars = append(vars, fmt.Sprintf("%s=%s", name, ph.Vars[name]))
			}
			visible.Fprintf(s.out, "%s, phase %d, from %v after the barrier: %s\n",
				a.Name, i+1, ph.StartAfter.Duration.Duration, strings.Join(vars, " "))
		}
	}
}

func bytes(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }
