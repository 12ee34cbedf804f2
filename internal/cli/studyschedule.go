package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/runner/runnerpod"
	"github.com/cnsbench/cnsbench/internal/study"
	"github.com/cnsbench/cnsbench/internal/study/timetable"
)

// scheduleFlags are those of study schedule.
type scheduleFlags struct {
	studyFlags
	end                   endFlags
	at                    []string
	study, account, claim string
}

func newStudySchedule(s *streams) *cobra.Command {
	var f scheduleFlags
	c := &cobra.Command{
		Use:   "schedule DIR | schedule FILE [FILE…] --study DIR",
		Short: "Write CronJobs that add occasions",
		Long: `Writes CronJobs that run cnsbench study add-occasion at certain times of the week.
DIR is the directory of a study. With FILE the first occasion begins the study in
the directory --study. It installs nothing.

The directory is on the claim --claim, which is mounted at /study, and a ConfigMap has
the files. A schedule for DIR expects a copy of DIR there. On one machine let cron, or a
timer of systemd, run cnsbench study add-occasion DIR --up-to N.`,
		Example: `  cnsbench study schedule study.yaml --engine kubernetes -n bench --claim studies --occasions 4
  cnsbench study schedule study --claim studies --at 'Mon..Fri 10:30' --at 'Sat 03:00' --exclude-date 2026-12-24`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.execute(cmd, s, args) },
	}
	f.add(c)
	fl := c.Flags()
	for _, name := range []string{"dry-run", "verbose", "output"} {
		fl.Lookup(name).Hidden = true
	}
	fl.Lookup("out").Usage = "directory to write the files into (default the standard output)"
	fl.StringArrayVar(&f.at, "at", nil, "DAYS HH:MM, such as 'Mon..Fri 10:30', 'Sat,Sun 03:00' or 'daily 22:00'; may be "+
		"repeated (default Tue 10:30, Thu 02:30, Sat 14:30)")
	f.end.add(fl, "number of occasions after which nothing is run (default the planned number)")
	fl.StringVar(&f.study, "study", "", "directory of a study that FILE begins (default cnsbench-study-NAME)")
	fl.StringVar(&f.account, "service-account", "default", "ServiceAccount of the pods")
	fl.StringVar(&f.claim, "claim", "", "PersistentVolumeClaim for the study")
	return c
}

// scheduled is a study for which a schedule is written.
type scheduled struct {
	name    string
	planned int
	// dir of the study.
	dir string
	// files and args of add-occasion; a study that has begun records its own.
	command study.Command
	begun   bool
	sources []plan.File
}

func (f *scheduleFlags) execute(cmd *cobra.Command, s *streams, args []string) error {
	if err := f.checkCounts(cmd); err != nil {
		return err
	}
	if info, err := os.Stat(f.run.Out); f.run.Out != "" && (err != nil || !info.IsDir()) {
		return fmt.Errorf("--out %s is no directory: create it first, mkdir -p %s, or leave out --out to print the files",
			f.run.Out, f.run.Out)
	}
	of, err := f.subject(cmd, s, args)
	if err != nil {
		return err
	}
	t, err := f.task(s, of)
	if err != nil {
		return err
	}
	objects, err := f.cronJobs(t, of)
	if err != nil {
		return err
	}
	return writeSchedule(cmd.Context(), s, f.run.Out, t.ObjectName()+".yaml", objects)
}

// subject is the study in a directory, or that of files.
func (f *scheduleFlags) subject(cmd *cobra.Command, s *streams, args []string) (*scheduled, error) {
	if info, err := os.Stat(args[0]); err == nil && info.IsDir() {
		dir, err := study.Open(args[0])
		if err != nil {
			return nil, err
		}
		of := &scheduled{name: dir.Name, planned: dir.Planned, dir: args[0], begun: true}
		if dir.Command == nil {
			return nil, fmt.Errorf("an earlier version began the study in %s and did not record its files: "+
				"cnsbench study schedule FILE --study %s", args[0], args[0])
		}
		of.command = *dir.Command
		return of, takeOver(cmd, args[0], dir.Command.Args)
	}
	command, err := commandOf(cmd, args)
	if err != nil {
		return nil, failed(err)
	}
	command.Args = slices.DeleteFunc(command.Args, func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		return slices.Contains([]string{"at", "study", "service-account", "claim"}, name)
	})
	of := &scheduled{command: *command, dir: f.study}
	if of.sources, err = readFiles(s, args); err != nil {
		return nil, err
	}
	d, _, err := f.design(cmd.Context(), newTrialRunner(s, &f.studyFlags, args))
	if err != nil {
		return nil, err
	}
	of.name, of.planned = d.Name, d.Planned
	if of.dir == "" {
		of.dir = "cnsbench-study-" + d.Name
	}
	return of, nil
}

// task is when add-occasion runs, with its flags.
func (f *scheduleFlags) task(s *streams, of *scheduled) (timetable.Task, error) {
	t := timetable.Task{Name: of.name, Zone: f.zone, Slots: timetable.DefaultSlots()}
	if len(f.at) > 0 {
		t.Slots = nil
	}
	for _, text := range f.at {
		slot, err := timetable.ParseSlot(text)
		if err != nil {
			return t, fmt.Errorf("--at: %w", err)
		}
		t.Slots = append(t.Slots, slot)
	}
	if t.Zone == "" {
		t.Zone = localZone()
	}
	if _, err := parseZone(t.Zone); err != nil {
		return t, err
	}
	if t.Zone != "" {
		t.Command = append(t.Command, "--time-zone="+t.Zone)
	}
	if err := f.end.check(); err != nil {
		return t, err
	}
	if f.end.upTo == 0 && of.planned > 1 {
		f.end.upTo = of.planned
	}
	if f.end.upTo > 0 {
		t.Command = append(t.Command, fmt.Sprintf("--up-to=%d", f.end.upTo))
	} else {
		fmt.Fprintln(s.err, "warning: the study plans one occasion, so the schedule has no end; --up-to gives one")
	}
	for _, date := range f.end.excluded {
		t.Command = append(t.Command, "--exclude-date="+date)
	}
	return t, nil
}

// cronJobs writes the objects for a cluster.
func (f *scheduleFlags) cronJobs(t timetable.Task, of *scheduled) (string, error) {
	if f.claim == "" {
		return "", errors.New("--claim is missing: a PersistentVolumeClaim for the directory of the study")
	}
	j := timetable.Job{Namespace: f.run.Namespace, Claim: f.claim, Annotations: runnerpod.Annotations(),
		Files: map[string]string{}}
	command := []string{"study", "add-occasion", timetable.StudyMount + "/" + filepath.Base(of.dir)}
	for _, file := range of.command.Files {
		if !strings.HasPrefix(file, suitePrefix) {
			text, err := bounded.ReadFile(bounded.LinkedFS(filepath.Dir(file)), filepath.Base(file), maxFile)
			if err != nil {
				return "", fmt.Errorf("%s: %w", of.dir, err)
			}
			j.Files[filepath.Base(file)] = string(text)
			file = runnerpod.FilesDir + "/" + filepath.Base(file)
		}
		command = append(command, file)
	}
	args := slices.DeleteFunc(slices.Clone(of.command.Args), func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains([]string{"--kubeconfig", "--context", "--runner", "--advertise", "--listen"}, name)
	})
	o := runnerpod.Options{Image: f.run.Image, ServiceAccount: f.account, Grace: 5 * time.Minute,
		Args: slices.Concat(command, args, t.Command, []string{"--runner=local"})}
	if len(j.Files) > 0 {
		o.Files = t.ObjectName()
	}
	j.Pod = runnerpod.Spec(o)
	var text strings.Builder
	for _, object := range timetable.CronJobs(t, j) {
		one, err := yaml.Marshal(object)
		if err != nil {
			return "", failed(err)
		}
		fmt.Fprintf(&text, "---\n%s", one)
	}
	return text.String(), nil
}

// writeSchedule writes the objects into a file of a directory, or prints them.
func writeSchedule(ctx context.Context, s *streams, dir, name, objects string) error {
	if dir == "" {
		_, err := io.WriteString(s.out, objects+"\n")
		return quietPipe(err)
	}
	name = filepath.Join(dir, name)
	if err := writeFile(ctx, name, func(w io.Writer) error {
		_, err := io.WriteString(w, objects)
		return err
	}); err != nil {
		return failed(err)
	}
	fmt.Fprintln(s.err, "wrote", name)
	return nil
}
