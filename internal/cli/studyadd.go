package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // an image need not have the files of time zones

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/study"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// addFlags are those of study add-occasion in addition to those of study run.
type addFlags struct {
	studyFlags
	end endFlags
}

func newStudyAddOccasion(s *streams) *cobra.Command {
	var f addFlags
	c := &cobra.Command{
		Use:   "add-occasion DIR [FILE…]",
		Short: "Run the blocks of a study once more, on another day",
		Long: `Adds an occasion to the study in DIR and runs its trials. Their order follows from
the seed of the study and the number of the occasion. Without FILE, and for flags
that are not given, it takes those of the command that began the study. If DIR has
no study, it begins one with FILE.

If the last occasion is not finished, it finishes that instead. Repeat the command
to continue after an interruption.

It refuses if a file of the study, a workload of its library or a flag that affects
trials has changed, because the trials would not be comparable.

Exit status: that of study run; 0 if the date is excluded or --up-to is reached.`,
		Example: `  cnsbench study add-occasion study
  cnsbench study add-occasion study --up-to 4 --exclude-date 2026-12-24 --exclude-date 2026-12-25`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("out") {
				return errors.New("--out is not for add-occasion: its first argument is the directory of the study")
			}
			return f.execute(cmd, s, args)
		},
	}
	f.add(c)
	c.Flags().Lookup("out").Hidden = true
	f.end.add(c.Flags(), "do nothing if the study has so many finished occasions (default no limit)")
	return c
}

func (f *addFlags) execute(cmd *cobra.Command, s *streams, args []string) error {
	out := args[0]
	there, err := study.Open(out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	blocks, err := f.ownBlocks(cmd, there)
	if err != nil {
		return err
	}
	command, err := f.continued(cmd, there, args)
	if err != nil {
		return err
	}
	o, err := f.occasion()
	if err != nil {
		return err
	}
	o.Blocks = blocks
	if skip, err := f.skip(there, o); skip != "" || err != nil {
		if err == nil {
			visible.Fprintln(s.err, skip)
		}
		return err
	}
	f.run.Out = out
	x := newTrialRunner(s, &f.studyFlags, command.Files)
	d, rooms, err := f.design(cmd.Context(), x)
	if err != nil && len(args) == 1 { // of the files that it recorded
		err = fmt.Errorf("%s: %w", out, err)
	}
	if err != nil {
		return err
	}
	d.Command = command
	if f.run.DryRun {
		return f.previewNext(s, d, rooms, o)
	}
	if x.notReady != nil {
		return x.notReady
	}
	return f.begin(cmd.Context(), x, d, o)
}

// begin adds the occasion, unless the study or its last occasion is to be begun or finished, and runs it.
func (f *addFlags) begin(ctx context.Context, x *trialRunner, d *study.Design, o study.Occasion) error {
	dir, err := study.Begin(f.run.Out, d, o)
	if err != nil {
		return err
	}
	n := dir.Unfinished()
	switch {
	case dir.Created:
		visible.Fprintf(x.err, "the study begins with its first occasion\n")
	case n > 0:
		visible.Fprintf(x.err, "occasion %d has %s left; it is finished, and none is added\n", dir.OccasionCount(),
			count(n, "trial"))
	default:
		if o, err = dir.AddOccasion(o); err != nil {
			return errors.Join(err, dir.Close())
		}
		visible.Fprintf(x.err, "occasion %d, %s\n", o.Number, o.Begun.Format("Monday, 2006-01-02 15:04 MST"))
	}
	return f.runTrials(ctx, x, dir, dir.OccasionCount())
}

// ownBlocks is the number of blocks of the added occasion, if the command line has one. The study keeps its own number.
func (f *addFlags) ownBlocks(cmd *cobra.Command, there *study.Dir) (int, error) {
	if err := f.checkCounts(cmd); err != nil {
		return 0, err
	}
	own := f.blocks
	if there == nil || own == 0 {
		return 0, nil
	}
	f.blocks = 0
	cmd.Flags().Lookup("blocks").Changed = false
	return int(own), nil
}

// continued is the command that continues the study: that which began it, with the given files and flags.
func (f *addFlags) continued(cmd *cobra.Command, there *study.Dir, args []string) (*study.Command, error) {
	if there != nil && there.Command != nil {
		if err := takeOver(cmd, args[0], there.Command.Args); err != nil {
			return nil, err
		}
		if len(args) == 1 {
			args = append(slices.Clip(args), there.Command.Files...)
			if err := recordedFiles(args[0], args[1:]); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case len(args) > 1:
	case there != nil:
		return nil, fmt.Errorf("an earlier version began the study in %s and did not record its files: "+
			"cnsbench study add-occasion %s FILE", args[0], args[0])
	default:
		return nil, fmt.Errorf("%s has no study: begin it with cnsbench study run, or give its FILE", args[0])
	}
	if err := f.checkCounts(cmd); err != nil {
		return nil, err
	}
	return commandOf(cmd, args[1:])
}

// recordedFiles checks the files that a study recorded, which may be somebody else's: reading a named pipe would not
// end.
func recordedFiles(dir string, names []string) error {
	for _, name := range names {
		if strings.HasPrefix(name, suitePrefix) {
			continue
		}
		if name == "-" {
			return fmt.Errorf("%s: the study was begun from the standard input: name its FILE", dir)
		}
		if fi, err := os.Stat(name); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		} else if !fi.Mode().IsRegular() {
			return fmt.Errorf("%s: the study recorded %s, which is no regular file: name its files", dir, name)
		}
	}
	return nil
}

// skip says why nothing is to be done.
func (f *addFlags) skip(there *study.Dir, o study.Occasion) (string, error) {
	if err := f.end.check(); err != nil {
		return "", err
	}
	if today := o.Begun.Format(time.DateOnly); slices.Contains(f.end.excluded, today) {
		return fmt.Sprintf("%s is excluded: nothing was run", today), nil
	}
	if there != nil && f.end.upTo > 0 && there.OccasionCount() >= f.end.upTo && there.Unfinished() == 0 {
		return fmt.Sprintf("the study has %s, as wanted: nothing was run", count(there.OccasionCount(), "occasion")), nil
	}
	return "", nil
}

// occasion is one that begins now.
func (f *studyFlags) occasion() (study.Occasion, error) {
	zone := f.zone
	if zone == "" {
		zone = localZone()
	}
	o := study.Occasion{Begun: time.Now().Round(time.Second), Zone: zone}
	if zone == "" {
		o.Zone, _ = o.Begun.Zone()
		return o, nil
	}
	at, err := parseZone(zone)
	if err != nil {
		return o, err
	}
	o.Begun = o.Begun.In(at)
	return o, nil
}

// parseZone reads --time-zone. "Local", which Go knows, would be another zone on another machine.
func parseZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("invalid --time-zone %q: want a name such as Europe/Berlin or UTC", name)
	}
	return zone, nil
}

// localZone is the IANA name of this machine's time zone; empty if it cannot be found.
func localZone() string {
	name, set := os.LookupEnv("TZ")
	if !set {
		link, err := filepath.EvalSymlinks("/etc/localtime")
		if err != nil {
			return "UTC" // as the time package does
		}
		_, name, _ = strings.Cut(link, "zoneinfo/")
	}
	name = strings.TrimPrefix(name, ":")
	if set && name == "" {
		name = "UTC"
	}
	if _, err := parseZone(name); err != nil {
		return ""
	}
	return name
}
