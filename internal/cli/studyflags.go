package cli

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnsbench/cnsbench/internal/runner/runflags"
)

// studyFlags are the flags of the commands that run a study.
type studyFlags struct {
	run               runFlags
	scale, zone       string
	blocks, occasions int32
	factors, aa       []string
	verbose           bool
}

// add registers the flags.
func (f *studyFlags) add(c *cobra.Command) {
	f.run.addRunFlags(c, runflags.Study)
	fl := c.Flags()
	fl.Lookup("dry-run").Usage = "check every cell and list the trials; create nothing"
	fl.StringVar(&f.scale, "scale", "", "one of the scales of the study (default the full study)")
	fl.Int32Var(&f.blocks, "blocks", 0, "blocks of each occasion: trials of each cell (default the study's number)")
	fl.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "repetitions" { // as it was called before
			name = "blocks"
		}
		return pflag.NormalizedName(name)
	})
	fl.Int32Var(&f.occasions, "occasions", 0, "planned number of occasions (default the study's number)")
	fl.StringArrayVar(&f.factors, "factor", nil,
		"KEY=VALUE,VALUE…: values of a factor of the study, or of a new one; KEY as in --set; may be repeated")
	fl.StringArrayVar(&f.aa, "aa", nil, "FACTOR=VALUE: run the cells of this level twice in each block, under two "+
		"labels; all: every cell; may be repeated")
	fl.StringVar(&f.zone, "time-zone", "", "time zone of dates and hours, such as Europe/Berlin (default the local one)")
	fl.BoolVar(&f.verbose, "verbose", false, "print the progress and summary of each trial")
}

// endFlags say when add-occasion does nothing.
type endFlags struct {
	excluded []string
	upTo     int
}

func (f *endFlags) add(fl *pflag.FlagSet, upTo string) {
	fl.StringArrayVar(&f.excluded, "exclude-date", nil, "YYYY-MM-DD: do nothing on this date; may be repeated")
	fl.IntVar(&f.upTo, "up-to", 0, upTo)
}

// check refuses invalid values.
func (f *endFlags) check() error {
	for _, date := range f.excluded {
		if _, err := time.Parse(time.DateOnly, date); err != nil {
			return fmt.Errorf("invalid --exclude-date %q: want YYYY-MM-DD", date)
		}
	}
	if f.upTo < 0 {
		return fmt.Errorf("invalid --up-to %d: want at least 1", f.upTo)
	}
	return nil
}

// checkCounts checks the numbers of blocks and occasions.
func (f *studyFlags) checkCounts(cmd *cobra.Command) error {
	for name, n := range map[string]int32{"blocks": f.blocks, "occasions": f.occasions} {
		if cmd.Flags().Changed(name) && n < 1 {
			return fmt.Errorf("invalid --%s %d: want at least 1", name, n)
		}
	}
	return nil
}

// flags are the flags that all trials share.
func (f *studyFlags) flags() (list []string, err error) {
	shared := f.run.Flags
	if !engines()[shared.Engine].capabilities.BuiltInDrivers {
		shared.StorageDir = ""
	} else if shared.StorageDir, err = filepath.Abs(shared.StorageDir); err != nil {
		return nil, err
	}
	shared.Inject, err = f.run.injection()
	return shared.Args(runflags.Trial), err
}
