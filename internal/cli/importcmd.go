package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/imported"
)

func newImport(s *streams) *cobra.Command {
	c := &cobra.Command{Use: "import", Short: "Import measurements of other tools for comparison"}
	c.AddCommand(newImportCSV(s))
	for _, t := range imported.Tools() {
		c.AddCommand(newImportTool(s, t))
	}
	return c
}

func newImportCSV(s *streams) *cobra.Command {
	var f imported.Format
	var out string
	c := &cobra.Command{
		Use:   "csv FILE --out DIR --factor COLUMN --value COLUMN",
		Short: "Import a CSV file with one value in each row",
		Long: `Imports a tidy CSV file: its first line names the columns, each other line has one
value. FILE may be "-" for the standard input. Flags name the columns by their
roles; other columns are ignored. DIR is then compared like a study:
cnsbench compare DIR --factor COLUMN.

Every row is checked, and the first problem ends the import with its line: an empty
cell, a number with a decimal comma, a second unit of a metric, two rows of the same
trial. A file has at most 20 million rows; an import takes about 35 bytes of memory for
each, a comparison about 150.

A table of means has --mean instead of --value, with --sd and --n where it has them:
its figures are shown and checked, and get no verdict.`,
		Example: `  cnsbench import csv results.csv --out imported --factor provider --block occasion \
      --repetition repetition --metric metric --unit unit --value value
  cnsbench import csv means.csv --out imported --factor provider --metric metric --unit unit --mean mean --sd sd`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if out == "" {
				return errors.New("no folder for the imported study: want --out DIR")
			}
			return importCSV(s, out, args[0], f)
		},
	}
	fl, at := c.Flags(), &f.Columns
	fl.StringVarP(&out, "out", "o", "", "folder of the imported study; must not exist or be empty")
	fl.StringArrayVar(&at.Factors, "factor", nil, "column whose values are compared; may be repeated")
	fl.StringVar(&at.Occasion, "occasion", "", "column of the time of measurement, such as a day")
	fl.StringVar(&at.Block, "block", "", "column of a group of trials close in time")
	fl.StringVar(&at.Repetition, "repetition", "", "column of the number of the trial (default: order of the rows)")
	fl.StringVar(&at.Metric, "metric", "", "column of the name of the metric (default: one metric, named as --value)")
	fl.StringVar(&at.Unit, "unit", "", "column of the unit")
	fl.StringVar(&at.Value, "value", "", "column of the value")
	fl.StringVar(&at.Mean, "mean", "", "column of the mean, in a table of means")
	fl.StringVar(&at.SD, "sd", "", "column of the standard deviation, in a table of means")
	fl.StringVar(&at.N, "n", "", "column of the number of values, in a table of means")
	fl.StringVar(&f.Separator, "separator", "", "character between cells (default a comma)")
	fl.BoolVar(&f.Missing, "missing", false, "count rows without a number as trials without a value")
	return c
}

func importCSV(s *streams, out, file string, f imported.Format) error {
	from := s.in
	name := "standard input"
	if file != "-" {
		in, err := os.Open(file)
		if err != nil {
			return err
		}
		defer in.Close()
		from, name = in, file
	}
	d, err := imported.CSV(out, name, from, f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return quietPipe(describeImport(s.out, out, d))
}

// describeImport says what was imported and how to compare it.
func describeImport(w io.Writer, out string, d *imported.Description) error {
	var levels []string
	for _, f := range d.Format.Columns.Factors {
		levels = append(levels, fmt.Sprintf("%s of %s", count(d.Counts.Levels[f], "level"), f))
	}
	text := fmt.Sprintf("imported %s: %s, %s", count(d.Counts.Rows, "row"), count(d.Counts.Metrics, "metric"),
		strings.Join(levels, ", "))
	if d.Counts.Missing > 0 {
		text += fmt.Sprintf("; %s without a value", count(d.Counts.Missing, "row"))
	}
	for _, f := range d.Flags {
		text += fmt.Sprintf("\n%s: %s, %s: %s", f.Severity, f.Source, f.Name, f.Evidence)
	}
	factor := d.Format.Columns.Factors[0]
	if strings.ContainsAny(factor, " '\"$\\") {
		factor = "'" + strings.ReplaceAll(factor, "'", `'\''`) + "'"
	}
	_, err := fmt.Fprintf(w, "%s\ncompare: cnsbench compare %s --factor %s\n", text, out, factor)
	return err
}

// newImportTool imports the output of another program.
func newImportTool(s *streams, t imported.Tool) *cobra.Command {
	var out, factor string
	c := &cobra.Command{
		Use:   t.Name + " [LEVEL[@OCCASION]=]FILE… --out DIR",
		Short: "Import " + t.What,
		Long: "Imports " + t.What + `.
Each FILE is a trial of LEVEL, a level of the factor; files of the same LEVEL are
repetitions. Without LEVEL it is what the figures name for the factor, as in
/provider=x of a Go benchmark, else the name of the file without its extension.
OCCASION, given to every file or to none, is the time of measurement: repetitions of
one occasion share its conditions (docs/how-to/compare.md).`,
		Example: fmt.Sprintf("  cnsbench import %s old=1.out old=2.out new=3.out new=4.out --out imported\n"+
			"  cnsbench import %s a@monday=1.out a@friday=2.out b@monday=3.out b@friday=4.out --out imported", t.Name, t.Name),
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if out == "" {
				return errors.New("no folder for the imported study: want --out DIR")
			}
			var inputs []imported.Input
			for _, arg := range args {
				inputs = append(inputs, inputOf(arg))
			}
			d, err := imported.Outputs(out, t, factor, inputs)
			if err != nil {
				return err
			}
			return quietPipe(describeImport(s.out, out, d))
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "", "folder of the imported study; must not exist or be empty")
	c.Flags().StringVar(&factor, "factor", "provider", "name of the factor")
	return c
}

// inputOf splits LEVEL@OCCASION=FILE.
func inputOf(arg string) imported.Input {
	label, file, given := strings.Cut(arg, "=")
	if _, err := os.Stat(arg); err == nil {
		given = false
	}
	if !given {
		file = arg
		base := filepath.Base(arg)
		label = strings.TrimSuffix(base, filepath.Ext(base))
	}
	level, occasion, _ := strings.Cut(label, "@")
	return imported.Input{Level: level, Default: !given, Occasion: occasion, Name: file,
		Open: func() (io.ReadCloser, error) { return os.Open(file) }}
}
