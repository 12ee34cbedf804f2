package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/imported"
	"github.com/cnsbench/cnsbench/internal/visible"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

func newImport(s *streams) *cobra.Command {
	var out, factor string
	tools := parser.Tools()
	names, list := namesOf(tools)
	c := &cobra.Command{
		Use:   "import [TOOL] [LEVEL[@OCCASION]=]FILE… --out DIR",
		Short: "Import measurements of other tools for comparison",
		Long: `Imports what other tools wrote, and recognises the tool:

` + list + `

TOOL names it where a file is not recognised. A file may be compressed
(gzip, zstd), in UTF-16, or the log of a pod with times (kubectl logs --timestamps).
What is not understood is said, with its line; docs/format/readers.md has what each
reader reads, leaves out and refuses.

Each FILE is a trial of LEVEL, a level of the factor; files of the same LEVEL are
repetitions. Without LEVEL it is what the figures name for the factor, as in
/provider=x of a Go benchmark, else the name of the file without its extension.
OCCASION, given to every file or to none, is the time of measurement: repetitions of
one occasion share its conditions (docs/how-to/compare.md).

Figures of different options, such as another block size, are never repetitions: the
options become part of the metric's name, and levels that ran different workloads are
flagged. DIR is then compared like a study: cnsbench compare DIR --factor provider.`,
		Example: `  cnsbench import old=1.json old=2.json new=3.json new=4.json --out imported
  cnsbench import fio a@monday=1.out a@friday=2.out b@monday=3.out b@friday=4.out --out imported`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			chosen := tools
			if i := slices.Index(names, args[0]); i >= 0 && !hasFile(".", args[0]) {
				chosen, args = tools[i:i+1], args[1:]
			}
			switch {
			case len(args) == 0:
				return fmt.Errorf("no file: want cnsbench import %s FILE… --out DIR", chosen[0].Name)
			case out == "":
				return errors.New("no folder for the imported study: want --out DIR")
			}
			var inputs []imported.Input
			for _, arg := range args {
				inputs = append(inputs, inputOf(s, arg))
			}
			d, err := imported.Outputs(out, chosen, factor, inputs)
			if err != nil {
				return err
			}
			return quietPipe(describeImport(s.out, out, d))
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "", "folder of the imported study; must not exist or be empty")
	c.Flags().StringVar(&factor, "factor", "provider", "name of the factor")
	maxSizeFlag(c, s)
	c.AddCommand(newImportCSV(s))
	return c
}

// namesOf returns the names of tools, and a line of help for each.
func namesOf(tools []imported.Tool) (names []string, help string) {
	var list []string
	for _, t := range tools {
		names = append(names, t.Name)
		list = append(list, fmt.Sprintf("  %-10s %s", t.Name, t.What))
	}
	return names, strings.Join(list, "\n")
}

func newImportCSV(s *streams) *cobra.Command {
	var f imported.Format
	var out string
	c := &cobra.Command{
		Use:   "csv FILE --out DIR --factor COLUMN --value COLUMN",
		Short: "Import a CSV file with one value or several in each row",
		Long: `Imports a CSV file: its first line names the columns, each other line has one value,
or one of each metric. FILE may be "-" for the standard input; it may be compressed
(gzip, zstd) or in UTF-16 with a byte order mark. Flags name the columns by their
roles; other columns are ignored. DIR is then compared like a study:
cnsbench compare DIR --factor COLUMN.

With several --value, each of these columns is a metric with the column's name. --wide
takes all columns without another role: a column that has no numbers ends the import,
unless it is a --factor or left out by --ignore. The unit of a metric may be at the end
of its column's name, as in "latency (ms)" or "bandwidth [MB/s]".

Every row is checked, and the first problem ends the import with its line: an empty
cell, a number with a decimal comma, a second unit of a metric, two rows of the same
trial. A file has at most 20 million values; an import takes about 35 bytes of memory
for each row, a comparison about 150 for each value.

A table of means has --mean instead of --value, with --sd and --n. Where it has all
three, means are compared by Welch's test, which assumes normal values; without, they are
shown and checked, and get no verdict.`,
		Example: `  cnsbench import csv results.csv --out imported --factor provider --block occasion \
      --repetition repetition --metric metric --unit unit --value value
  cnsbench import csv wide.csv --out imported --factor provider --wide --ignore comment
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
	fl.StringVar(&at.Metric, "metric", "", "column of the name of the metric (default: named as each --value)")
	fl.StringVar(&at.Unit, "unit", "", "column of the unit (default: in brackets at the end of the column's name)")
	fl.StringArrayVar((*[]string)(&at.Values), "value", nil, "column of values; may be repeated")
	fl.BoolVar(&at.Wide, "wide", false, "all columns without another role are columns of values")
	fl.StringArrayVar(&at.Ignore, "ignore", nil, "column that --wide leaves out; may be repeated")
	fl.StringVar(&at.Mean, "mean", "", "column of the mean, in a table of means")
	fl.StringVar(&at.SD, "sd", "", "column of the standard deviation (divisor n - 1), in a table of means")
	fl.StringVar(&at.N, "n", "", "column of the number of values, in a table of means")
	fl.StringVar(&f.Separator, "separator", "", "character between cells (default a comma)")
	maxSizeFlag(c, s)
	fl.BoolVar(&f.Missing, "missing", false, "count cells without a number as trials without a value")
	return c
}

func importCSV(s *streams, out, file string, f imported.Format) error {
	name := "standard input"
	if file != "-" {
		name = file
	}
	from, err := s.open(file)
	if err != nil {
		return err
	}
	defer from.Close()
	d, err := imported.CSV(out, name, from, f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return quietPipe(describeImport(&visible.Writer{To: s.out}, out, d))
}

// describeImport says what was imported and how to compare it.
func describeImport(w io.Writer, out string, d *imported.Description) error {
	var levels []string
	for _, f := range d.Format.Columns.Factors {
		levels = append(levels, fmt.Sprintf("%s of %s", count(d.Counts.Levels[f], "level"), f))
	}
	written := ""
	if d.Importer != "csv" {
		written = " of " + d.Importer
	}
	text := visible.Line(fmt.Sprintf("imported %s%s: %s, %s", count(d.Counts.Rows, "row"), written, count(d.Counts.Metrics, "metric"),
		strings.Join(levels, ", ")))
	if d.Counts.Missing > 0 {
		text += fmt.Sprintf("; %s without a value", count(d.Counts.Missing, "cell"))
	}
	if columns := d.Format.Columns.Values; len(columns) > 1 {
		text += "\ncolumns of values: " + visible.Line(strings.Join(columns, ", "))
	}
	for _, f := range d.Flags {
		text += "\n" + visible.Line(fmt.Sprintf("%s: %s, %s: %s", f.Severity, f.Source, f.Name, f.Evidence))
	}
	factor := d.Format.Columns.Factors[0]
	for _, f := range d.Format.Columns.Factors { // of the first that has something to compare
		if d.Counts.Levels[factor] < 2 && d.Counts.Levels[f] > 1 {
			factor = f
		}
	}
	if strings.ContainsAny(factor, " '\"$\\") {
		factor = "'" + strings.ReplaceAll(factor, "'", `'\''`) + "'"
	}
	_, err := fmt.Fprintf(w, "%s\ncompare: cnsbench compare %s --factor %s\n", text, visible.Line(out), visible.Line(factor))
	return err
}

// inputOf splits LEVEL@OCCASION=FILE.
func inputOf(s *streams, arg string) imported.Input {
	label, file, given := strings.Cut(arg, "=")
	if _, err := os.Stat(arg); err == nil {
		given = false
	}
	if !given {
		file = arg
		base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(arg), ".zst"), ".gz")
		label = strings.TrimSuffix(base, filepath.Ext(base))
	}
	level, occasion, _ := strings.Cut(label, "@")
	return imported.Input{Level: level, Default: !given, Occasion: occasion, Name: file,
		Open: func() (io.ReadCloser, error) { return s.open(file) }}
}
