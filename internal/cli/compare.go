package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/imported"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/report/comparison"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// compareFlags are the flags of compare.
type compareFlags struct {
	factor, against, margin, level, output, baseline, prices string
	paired, pairedSet, history, strict                       bool
	directions, aa, limits, blocks, failOn, across           []string
}

func newCompare(s *streams) *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:   "compare {DIR | [LABEL=]BUNDLE… | --history DIR}",
		Short: "Compare the levels of a factor, two versions, or a series of runs",
		Long: `Compares the levels of a factor of a study (or of an imported one) metric by metric:
for each pair b against a, the ratio b/a with its 95 % interval, a p-value adjusted
for the comparisons of the metric, and a verdict: better, worse, different (it is
unknown which values are better), equivalent, trivial, inconclusive, none.
docs/how-to/compare.md says how each is decided and how to read the tables.

Where trials were repeated on several occasions, the occasion is the unit of analysis.
A second answer, from all repetitions, holds for these occasions only; --level
repetition makes it the verdict.

Bundles are trials: those with the same LABEL are of one level. Of two single bundles
the quantiles within them are compared.

--baseline compares every cell with the same cell of an earlier study or bundle. Runs of
another workload get no verdict, unless --across names what differs.
--prices adds what each trial cost as metrics.

--history searches the bundles or studies in DIR, in order of their names, for runs
from which a metric changed; or, if DIR is a study, its occasions.

Validity flags of the trials count: a level whose trials are invalid has no verdict, and
weaker flags stand beside it.

Exit status: 5 if a verdict is one of --fail-on, which judges the answer for these
occasions where they are too few for one in general; 6 if --fail-on has nothing to
judge: a level has no value where another has some, or no comparison has a verdict,
or none but different;
with --strict 4 if there is a validity flag, also of a trial.`,
		Example: `  cnsbench compare imported --factor provider
  cnsbench compare imported --limit 'provider=Portworx,metric=Random read IOPS,max=15000' --output markdown
  cnsbench compare study --baseline study-before --fail-on worse
  cnsbench compare old=run-1 old=run-2 new=run-3 new=run-4`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.pairedSet = cmd.Flags().Changed("paired")
			return f.execute(s, args)
		},
	}
	f.add(c)
	return c
}

func (f *compareFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.factor, "factor", "",
		"factor whose levels are compared (default the only one, or the one that the study names)")
	fl.StringVar(&f.against, "against", "", "compare all levels with this one (default every pair)")
	fl.StringVar(&f.margin, "margin", "",
		"difference that matters, such as 10% (default 5%, or the noise floor if greater)")
	fl.BoolVar(&f.paired, "paired", false,
		"values with the same block and repetition are pairs (default those of a study)")
	fl.StringVar(&f.level, "level", "occasion", "unit of analysis of the verdict: occasion or repetition")
	fl.StringArrayVar(&f.directions, "direction", nil,
		"higher or lower, or METRIC=higher: which values are better (default by unit and name); may be repeated")
	fl.StringArrayVar(&f.aa, "aa", nil, "A=B: two levels that are one provider, for the noise floor; may be repeated")
	fl.StringArrayVar(&f.limits, "limit", nil,
		"FACTOR=LEVEL,metric=METRIC,max=NUMBER: flag values above what devices allow; may be repeated")
	fl.StringArrayVar(&f.blocks, "block-size", nil,
		"METRIC=SIZE or SIZE: block size of a bandwidth, to check it against the IOPS; may be repeated")
	fl.StringVar(&f.baseline, "baseline", "", "study or bundle to compare with")
	fl.StringArrayVar(&f.across, "across", nil,
		"NAME: compare although this part of the workload differs, such as load.bs, or all; may be repeated")
	fl.BoolVar(&f.history, "history", false, "search the runs in DIR for changes")
	fl.StringSliceVar(&f.failOn, "fail-on", nil, "verdicts that make the exit status 5, such as worse,different")
	fl.BoolVar(&f.strict, "strict", false, "exit with status 4 if a figure cannot be trusted (a validity flag)")
	fl.StringVar(&f.output, "output", "text", "")
	outputValues(c, &f.output, "text", "json", "csv", "markdown", "benchstat")
	pricesFlag(c, &f.prices)
}

// check reports an invalid flag.
func (f *compareFlags) check() error {
	if err := oneOf("--level", f.level, []string{"occasion", "repetition"}); err != nil {
		return err
	}
	verdicts := []string{string(verdict.Worse), string(verdict.Better), string(verdict.Different), string(verdict.Trivial),
		string(verdict.Inconclusive), string(verdict.None), string(verdict.Equivalent)}
	for _, v := range f.failOn {
		if err := oneOf("--fail-on", v, verdicts); err != nil {
			return err
		}
	}
	if f.history && f.baseline != "" {
		return errors.New("--history and --baseline exclude each other")
	}
	return nil
}

func (f *compareFlags) execute(s *streams, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	in, o, err := f.input(s, args)
	if err != nil {
		return err
	}
	if f.output == "benchstat" {
		return quietPipe(comparison.WriteBenchstat(s.out, in.table, betters(in.table, o)))
	}
	r, err := f.answer(in, o)
	if err != nil {
		return err
	}
	gate := f.gateNotes(r)
	for _, n := range gate {
		fmt.Fprintf(s.err, "warning: %s\n", n)
	}
	r.Notes = append(r.Notes, gate...)
	if err := f.write(s.out, r); err != nil {
		return quietPipe(err)
	}
	return f.judge(r)
}

// input reads what is compared, and how.
func (f *compareFlags) input(s *streams, args []string) (in *compared, o compare.Options, err error) {
	if in, err = f.read(s, args); err != nil {
		return nil, o, err
	}
	o, err = f.judging(in)
	return in, o, err
}

// judging returns how what was read is compared, and notes what differs between the workloads.
func (f *compareFlags) judging(in *compared) (o compare.Options, err error) {
	if err := distinctOrigins(in.origins); err != nil {
		return o, err
	}
	notes, reason, err := unlike(in.origins, f.across)
	if err != nil {
		return o, err
	}
	in.notes, in.unlike = append(in.notes, notes...), reason
	return f.options(in)
}

// answer compares.
func (f *compareFlags) answer(in *compared, o compare.Options) (*compare.Result, error) {
	do := compare.Run
	if f.history {
		do = compare.Histories
	}
	r, err := do(in.table, o)
	if err != nil {
		return nil, err
	}
	for _, d := range in.distributions {
		r.Distributions = append(r.Distributions, d)
		r.Sentences = append(r.Sentences, d.Sentences()...)
	}
	r.Sentences = append(r.Sentences, in.sentences...)
	for _, f := range in.flags {
		r.Flags = append(r.Flags, f)
		text := fmt.Sprintf("%s, %s: %s.", f.Name, f.Level, f.Evidence)
		if f.Name == imported.WorkloadsDiffer { // before any verdict
			r.Sentences = slices.Insert(r.Sentences, 0, text)
		} else {
			r.Sentences = append(r.Sentences, text)
		}
	}
	r.Notes = slices.Concat(r.Notes, in.notes, in.costs.notes())
	return r, nil
}

// write prints the answer.
func (f *compareFlags) write(w io.Writer, r *compare.Result) error {
	switch f.output {
	case "json":
		return writeJSON(w, r)
	case "csv":
		return comparison.WriteCSV(&visible.Writer{To: w}, r, table.Cell)
	case "markdown":
		return comparison.WriteMarkdown(&visible.Writer{To: w}, r)
	}
	return terminal.WriteComparison(w, r, terminalOptions(w))
}

// options reads the flags of the analysis.
func (f *compareFlags) options(in *compared) (o compare.Options, err error) {
	o = compare.Options{Factor: f.factor, Against: f.against, Paired: f.paired || in.paired && !f.pairedSet,
		ByDesign:      !f.pairedSet,
		PerRepetition: f.level == "repetition", Whole: in.factor == versionFactor,
		AssumeBlock: in.assumeBlock, Trial: in.trial, Times: in.times,
		Least: in.least, Quantiles: in.quantiles}
	o.Factor = cmp.Or(in.factor, o.Factor, in.preferred)
	if o.Directions, err = compare.ParseDirections(f.directions); err != nil {
		return o, err
	}
	for metric, d := range in.directions {
		_, given := o.Directions[metric]
		if _, all := o.Directions[""]; !given && !all {
			o.Directions[metric] = d
		}
	}
	costDirections(o.Directions, in.table)
	o.Weak = map[string]string{"": in.unlike}
	maps.Copy(o.Weak, in.costs.weak())
	factor := o.Factor
	if factor == "" && len(in.table.Factors) == 1 {
		factor = in.table.Factors[0]
	}
	o.AA = slices.Clone(in.arms[factor])
	o.Margins = in.margins
	if f.margin != "" {
		if o.Margin, err = share(f.margin); err != nil {
			return o, err
		}
	}
	for _, text := range f.aa {
		a, b, ok := strings.Cut(text, "=")
		if !ok {
			return o, fmt.Errorf("invalid --aa %q: want LEVEL=LEVEL, two labels of one provider", text)
		}
		o.AA = append(o.AA, [2]string{a, b})
	}
	for _, text := range f.limits {
		l, err := compare.ParseLimit(text, in.table.Factors)
		if err != nil {
			return o, err
		}
		o.Limits = append(o.Limits, l)
	}
	o.BlockSizes, err = f.blockSizes()
	return o, err
}

// blockSizes returns the block sizes of --block-size in bytes by metric; "": of all others.
func (f *compareFlags) blockSizes() (map[string]float64, error) {
	sizes := map[string]float64{}
	for _, text := range f.blocks {
		metric, size := "", text
		if at := strings.LastIndexByte(text, '='); at >= 0 {
			metric, size = text[:at], text[at+1:]
		}
		bytes, err := compare.ParseSize(size)
		if err != nil {
			return nil, fmt.Errorf("--block-size: %w", err)
		}
		sizes[metric] = bytes
	}
	return sizes, nil
}

// share reads "5%" or "0.05".
func share(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		x /= 100
	}
	if err != nil || !(x > 0 && x < 10) {
		return 0, fmt.Errorf("invalid --margin %q: want a share above 0, such as 5%% or 0.05", text)
	}
	return x, nil
}

// betters has the direction of each unit for benchstat, which has one for all metrics of a unit. Units whose metrics
// have several, or none that is known, are left out.
func betters(t *observation.Table, o compare.Options) map[string]string {
	list := map[string]string{}
	for _, m := range t.Metrics {
		unit, d := comparison.BenchstatUnit(m.Unit), compare.DirectionOf(m, o.Directions)
		if before, ok := list[unit]; ok && before != d {
			d = "unknown"
		}
		list[unit] = d
	}
	maps.DeleteFunc(list, func(_, d string) bool { return d == "unknown" })
	return list
}
