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
	b := observation.NewBuilder([]string{bundleFactor}, "", "")
	in := &compared{factor: bundleFactor, trial: "run"}
	var labels []string
	var data []*dataset.Data
	var times trial.Times
	for _, arg := range args {
		label, dir := labelled(arg)
		var d *dataset.Data
		found, err := searchAt(dir)
		switch {
		case err != nil:
			return nil, err
		case found != nil:
			addSearch(b, []string{label}, found)
			o, err := searchOrigin(label, dir)
			if err != nil {
				return nil, err
			}
			in.origins = append(in.origins, o)
		default:
			if d, err = in.addBundle(s, b, &times, []string{label}, dir, prices); err != nil {
				return nil, err
			}
		}
		if slices.Contains(labels, label) && !strings.Contains(arg, "=") {
			return nil, fmt.Errorf("two bundles are named %s: label them, LABEL=%s", label, dir)
		}
		labels, data = append(labels, label), append(data, d)
	}
	if err := distinctOrigins(in.origins); err != nil {
		return nil, err
	}
	in.table = b.Table()
	in.times = times.Fill(observation.NewBuilder([]string{bundleFactor}, "", ""))
	if len(args) != 2 || labels[0] == labels[1] || slices.Contains(data, nil) {
		var quantiles trial.Quantiles
		for i, d := range data {
			if d == nil { // a search
				continue
			}
			if err := quantiles.Add(observation.Row{Levels: labels[i : i+1]}, d); err != nil {
				return nil, err
			}
		}
		in.quantiles = quantiles.Fill(observation.NewBuilder([]string{bundleFactor}, "", ""))
		return in, nil
	}
	return in, in.within(labels, data)
}

// labelled splits LABEL=BUNDLE. Without a label it is the name of the directory.
func labelled(arg string) (label, dir string) {
	if label, dir, ok := strings.Cut(arg, "="); ok && !hasFile(arg, runFile) {
		return label, dir
	}
	return filepath.Base(filepath.Clean(arg)), arg
}

// addBundle adds the values of a bundle, as one trial of a cell.
func (in *compared) addBundle(s *streams, b *observation.Builder, times *trial.Times, levels []string, dir string,
	prices *cost.Prices) (*dataset.Data, error) {
	switch {
	case isBundle(dir):
	case hasFile(dir, studyFile), imported.Is(dir):
		return nil, fmt.Errorf("%s is a study, not a bundle: compare it with another by compare DIR --baseline EARLIER; "+
			"cnsbench study merge joins studies of two clusters", dir)
	default:
		return nil, fmt.Errorf("%s is no bundle: it has no %s", dir, runFile)
	}
	open, err := openBundle(s, dir)
	if err != nil {
		return nil, err
	}
	if !open.Complete || open.Run.State != bundle.Complete {
		return nil, fmt.Errorf("the run of %s %w", dir, errIncomplete)
	}
	of := trial.Values
	if in.withObjectives {
		of = trial.ValuesAndObjectives
	}
	d, values, err := trial.Read(open, of)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	flags, err := trial.FlagsOf(&open.Run)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	for _, v := range values {
		addFlagged(b, observation.Row{Levels: levels, Metric: v.Metric, Value: v.Value, State: v.State},
			func() ([]observation.Flag, bool) { return flags.Of(v.Query) })
		if v.Objective {
			in.objectives = merged(in.objectives, []string{v.Metric.Name})
		}
		if in.least == nil {
			in.least = map[string]int64{}
		}
		in.least[v.Metric.Name] = slo.Least(v.Query)
		times.Explain(v.Query)
	}
	if err := times.Add(observation.Row{Levels: levels}, open); err != nil {
		return nil, err
	}
	o := newOrigin(strings.Join(levels, ", "))
	if err := o.addRun(nil, &open.Run, dir); err != nil {
		return nil, err
	}
	in.origins = append(in.origins, o)
	return d, in.addCosts(b, observation.Row{Levels: levels}, d, prices, flags)
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
	switch found, err := searchAt(dir); {
	case err != nil:
		return nil, err
	case found != nil:
		b := observation.NewBuilder(nil, "", "")
		addSearch(b, nil, found)
		o, err := searchOrigin("", dir)
		return &compared{table: b.Table(), origins: []origin{o}}, err
	}
	if !isBundle(dir) {
		return readStudy(dir, prices)
	}
	b, in := observation.NewBuilder(nil, "", ""), &compared{withObjectives: objectives}
	var times trial.Times
	if _, err := in.addBundle(s, b, &times, nil, dir, prices); err != nil {
		return nil, err
	}
	in.table, in.times = b.Table(), times.Fill(observation.NewBuilder(nil, "", ""))
	return in, nil
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
	if err := distinctOrigins(origins); err != nil {
		return nil, err
	}
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
