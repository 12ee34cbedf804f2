package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/cost"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/analysis/trial"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/imported"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/study"
)

// Names of the compared factor where no study declares it, and of the levels of versionFactor.
const (
	bundleFactor  = "bundle"
	versionFactor = "version"
	historyFactor = "run"
	baselineLevel = "baseline"
	measuredLevel = "now"
)

// Files by which a bundle and a study are recognized.
const (
	runFile   = "run.json"
	studyFile = "study.json"
)

// assumedBlock is the block size in bytes of bandwidths in imported tables. Suites that run fio, such as dbench and
// kubestr, have it.
const assumedBlock = 128 << 10

// read reads what the arguments name.
func (f *compareFlags) read(s *streams, args []string) (*compared, error) {
	p, err := readPrices(f.prices)
	if err != nil {
		return nil, err
	}
	switch {
	case f.history:
		if len(args) != 1 {
			return nil, errors.New("--history takes one directory with bundles or studies")
		}
		return readHistory(s, args[0], p)
	case f.baseline != "":
		if len(args) != 1 {
			return nil, errors.New("--baseline takes one study or bundle to compare with it")
		}
		return readBaseline(s, f.baseline, args[0], p)
	case len(args) == 1 && !isBundle(args[0]):
		return readStudy(args[0], p)
	}
	return readBundles(s, args, p)
}

func isBundle(dir string) bool { return hasFile(dir, runFile) }

func hasFile(dir, name string) bool {
	return bounded.Dir(dir).Has(name)
}

// readStudy reads a study or an imported one.
func readStudy(dir string, prices *cost.Prices) (*compared, error) {
	switch {
	case imported.Is(dir):
		d, t, err := imported.Open(dir)
		if err != nil {
			return nil, err
		}
		if prices != nil {
			return nil, fmt.Errorf("--prices: %s is imported: it has no record of the resources used", dir)
		}
		in := &compared{table: t, origins: []origin{newOrigin("")}}
		if err := in.origins[0].addIdentity("SHA-256 "+d.SHA256, dir); err != nil {
			return nil, err
		}
		for _, f := range d.Flags {
			if f.Severity == imported.Info {
				continue // what was left out
			}
			in.flags = append(in.flags, compare.Flag{Name: f.Name, Severity: f.Severity, Level: f.Level,
				Evidence: f.Source + ": " + f.Evidence})
		}
		if d.Importer == "csv" {
			in.assumeBlock = assumedBlock
		}
		return in, nil
	case hasFile(dir, studyFile):
		d, err := study.Open(dir)
		if err != nil {
			return nil, err
		}
		if d.Search != nil {
			return nil, fmt.Errorf("%s is one search, which is one value: compare several, LABEL=DIR LABEL=DIR", dir)
		}
		return studyTable(d, prices)
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is a file: import it first (cnsbench import %s --out DIR, or cnsbench import csv), "+
			"and compare the folder", dir, dir)
	}
	return nil, fmt.Errorf("%s is neither a study, an imported study, nor a bundle; a directory of runs takes --history",
		dir)
}

// readBundles reads bundles as trials of the levels that their labels name.
func readBundles(s *streams, args []string, prices *cost.Prices) (*compared, error) {
	in := &compared{factor: bundleFactor, trial: "run"}
	r := runReader{streams: s, in: in, factors: []string{bundleFactor}, prices: prices}
	var labels []string
	var data []*dataset.Data
	for _, arg := range args {
		label, dir := labelled(arg)
		d, err := r.add([]string{label}, dir)
		if err != nil {
			return nil, err
		}
		if slices.Contains(labels, label) && !strings.Contains(arg, "=") {
			return nil, fmt.Errorf("two bundles are named %s: label them, LABEL=%s", label, dir)
		}
		labels, data = append(labels, label), append(data, d)
	}
	r.fill()
	if len(args) == 2 && labels[0] != labels[1] && !slices.Contains(data, nil) {
		return in, in.within(labels, data)
	}
	var quantiles trial.Quantiles
	for i, d := range data {
		if d == nil { // a search
			continue
		}
		if err := quantiles.Add(observation.Row{Levels: labels[i : i+1]}, d); err != nil {
			return nil, err
		}
	}
	in.quantiles = quantiles.Fill(r.builder())
	return in, nil
}

// labelled splits LABEL=BUNDLE. Without a label it is the name of the directory.
func labelled(arg string) (label, dir string) {
	if label, dir, ok := strings.Cut(arg, "="); ok && !isBundle(arg) && !isStudy(arg) {
		return label, dir
	}
	return filepath.Base(filepath.Clean(arg)), arg
}

// runReader reads bundles and searches, each as one trial of a cell.
type runReader struct {
	*streams
	in      *compared
	factors []string
	prices  *cost.Prices
	// objectives says that the figures that objectives name are values, too.
	objectives bool
	values     *observation.Builder
	times      trial.Times
}

func (r *runReader) builder() *observation.Builder { return observation.NewBuilder(r.factors, "", "") }

// fill makes the tables of what was read.
func (r *runReader) fill() {
	r.in.costs.fill(r.values)
	r.in.table, r.in.times = r.values.Table(), r.times.Fill(r.builder())
}

// add adds a run. The data are nil of a search.
func (r *runReader) add(levels []string, dir string) (*dataset.Data, error) {
	if r.values == nil {
		r.values = r.builder()
	}
	found, err := searchAt(dir)
	switch {
	case err != nil:
		return nil, err
	case found != nil:
		v := trial.OfSearch(found)
		r.values.Add(observation.Row{Levels: levels, Metric: v.Metric, Value: v.Value, State: v.State})
		o, err := searchOrigin(strings.Join(levels, ", "), dir)
		r.in.origins = append(r.in.origins, o)
		return nil, err
	case isStudy(dir):
		return nil, fmt.Errorf("%s is a study, not a bundle: compare it with another by compare DIR --baseline EARLIER; "+
			"cnsbench study merge joins studies of two clusters", dir)
	case !isBundle(dir):
		return nil, fmt.Errorf("%s is no bundle: it has no %s", dir, runFile)
	}
	open, err := openBundle(r.streams, dir)
	if err != nil {
		return nil, err
	}
	if !open.Complete || open.Run.State != bundle.Complete {
		return nil, fmt.Errorf("the run of %s %w", dir, errIncomplete)
	}
	d, err := r.addBundle(levels, open)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	o := newOrigin(strings.Join(levels, ", "))
	r.in.origins = append(r.in.origins, o)
	return d, o.addRun(nil, &open.Run, dir)
}

// addBundle adds the values, times and costs of a bundle.
func (r *runReader) addBundle(levels []string, open *bundle.Bundle) (*dataset.Data, error) {
	in, of := r.in, trial.Values
	if r.objectives {
		of = trial.ValuesAndObjectives
	}
	d, values, err := trial.Read(open, of)
	if err != nil {
		return nil, err
	}
	flags, err := trial.FlagsOf(&open.Run)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		addFlagged(r.values, observation.Row{Levels: levels, Metric: v.Metric, Value: v.Value, State: v.State},
			func() ([]observation.Flag, bool) { return flags.Of(v.Query) })
		if v.Objective {
			in.objectives = merged(in.objectives, []string{v.Metric.Name})
		}
		if in.least == nil {
			in.least = map[string]int64{}
		}
		in.least[v.Metric.Name] = slo.Least(v.Query)
		r.times.Explain(v.Query)
	}
	row := observation.Row{Levels: levels}
	if err := r.times.Add(row, open); err != nil {
		return nil, err
	}
	return d, in.addCosts(row, d, r.prices, flags)
}

// within compares the latencies within two bundles, and the components that took the time.
func (in *compared) within(labels []string, data []*dataset.Data) error {
	a, err := trial.Series(data[0])
	if err != nil {
		return err
	}
	b, err := trial.Series(data[1])
	if err != nil {
		return err
	}
	in.distributions = compare.Distributions(labels[0], labels[1], a, b)
	in.sentences, err = trial.Explain(labels[0], labels[1], data[0], data[1])
	return err
}

// readAny reads a bundle, a study, an imported study, or a search. With objectives, the figures that a bundle's
// objectives name are values, too.
func readAny(s *streams, dir string, prices *cost.Prices, objectives bool) (*compared, error) {
	found, err := searchAt(dir)
	if err != nil {
		return nil, err
	}
	if found == nil && !isBundle(dir) {
		return readStudy(dir, prices)
	}
	r := runReader{streams: s, in: &compared{}, prices: prices, objectives: objectives}
	if _, err := r.add(nil, dir); err != nil {
		return nil, err
	}
	r.fill()
	return r.in, nil
}

// readBaseline joins a study with an earlier one. Margins and directions are those that the later one
// declares.
func readBaseline(s *streams, baseline, dir string, prices *cost.Prices) (*compared, error) {
	before, err := readAny(s, baseline, prices, false)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	now, err := readAny(s, dir, prices, false)
	if err != nil {
		return nil, err
	}
	origins := []origin{before.origins[0], now.origins[0]}
	origins[0].label, origins[1].label = baselineLevel, measuredLevel
	t, err := observation.Join(versionFactor, []string{baselineLevel, measuredLevel},
		[]*observation.Table{before.table, now.table})
	if err != nil {
		return nil, fmt.Errorf("baseline %s: %w", baseline, err)
	}
	return &compared{table: t, factor: versionFactor, origins: origins, margins: now.margins, directions: now.directions,
		least: atLeast(before.least, now.least),
		times: joinTimes(before.times, now.times),
		costs: before.costs.with(now.costs, before.costs.known && now.costs.known),
		notes: append(now.notes, fmt.Sprintf("a (baseline) is %s, b (now) is %s; they are of different times, and a "+
			"difference may be that of the occasion", baseline, dir))}, nil
}

// atLeast has the greater number of each metric.
func atLeast(a, b map[string]int64) map[string]int64 {
	all := maps.Clone(b)
	if all == nil {
		all = map[string]int64{}
	}
	for metric, n := range a {
		all[metric] = max(all[metric], n)
	}
	return all
}

// joinTimes joins the times of a study with those of an earlier one; nil unless both have times of the same actions.
func joinTimes(before, now *compare.Times) *compare.Times {
	if before == nil || now == nil || len(before.Table.Metrics) == 0 || len(now.Table.Metrics) == 0 {
		return nil
	}
	t, err := observation.Join(versionFactor, []string{baselineLevel, measuredLevel},
		[]*observation.Table{before.Table, now.Table})
	if err != nil { // no component in common
		return nil
	}
	return &compare.Times{Table: t, Explains: now.Explains}
}
