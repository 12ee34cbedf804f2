package imported

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/decode"
	"github.com/cnsbench/cnsbench/internal/version"
)

// Tool is a format of output of another program.
type Tool struct {
	Name string // for --tool
	What string // the format, in a few words
	// Is recognises a text by what no other tool writes.
	Is func(text string) bool
	// Read reads one file. Every line or field of it is read, known and left out, or a flag of the report, or refused.
	Read func(text string) (*Report, error)
}

// Input is a file of a tool's output.
type Input struct {
	Level    string // of the factor
	Default  bool   // Level is from the name of the file: one in the tool's output has precedence
	Occasion string // ""; or for all inputs the time of measurement
	Name     string
	Open     func() (io.ReadCloser, error)
}

// maxOutput limits the text of a tool's output.
const maxOutput = 512 << 20

// Names of the columns of values that were written by a tool's importer.
const (
	occasionColumn   = "occasion"
	repetitionColumn = "repetition"
	metricColumn     = "metric"
	unitColumn       = "unit"
	valueColumn      = "value"
)

// ValueColumns are the names that a factor of an imported output cannot have.
var ValueColumns = []string{occasionColumn, repetitionColumn, metricColumn, unitColumn, valueColumn}

// maxFactors is the most factors that a tool's output may have.
const maxFactors = 20

// noLevel is the level of a factor that a figure does not have, but others.
const noLevel = "none"

// Outputs imports the output of tools into a new folder. Inputs of the same level and occasion are repetitions, in
// their order. The tool of each input is the one of tools that recognises it, or the only one.
func Outputs(dir string, tools []Tool, factor string, inputs []Input) (*Description, error) {
	d := &Description{FormatVersion: format, Program: version.Version, Format: Format{Columns: Columns{
		Factors: []string{factor}, Repetition: repetitionColumn, Metric: metricColumn, Unit: unitColumn,
		Values: Names{valueColumn}}}}
	for i, in := range inputs {
		if (in.Occasion == "") != (inputs[0].Occasion == "") {
			return nil, fmt.Errorf("%s: give an occasion to every file or to none", inputs[i].Name)
		}
	}
	if inputs[0].Occasion != "" {
		d.Format.Columns.Occasion = occasionColumn
	}
	if err := d.Format.Columns.check(); err != nil {
		return nil, err
	}
	err := create(dir, func(values io.Writer) error {
		sum := sha256.New()
		var text strings.Builder
		if err := d.convert(&text, tools, inputs); err != nil {
			return err
		}
		check, err := scan(strings.NewReader(text.String()), d.Format)
		if err != nil {
			return err
		}
		d.Counts = check.counts
		if _, err := io.WriteString(io.MultiWriter(values, sum), text.String()); err != nil {
			return err
		}
		d.SHA256 = hex.EncodeToString(sum.Sum(nil))
		return nil
	}, d)
	return d, err
}

// inputFigure is a figure of an input.
type inputFigure struct {
	Figure
	input *Input
}

// convert writes the figures of inputs as CSV.
func (d *Description) convert(to io.Writer, tools []Tool, inputs []Input) error {
	var all []inputFigure
	for i := range inputs {
		figures, err := d.figures(tools, &inputs[i])
		if err != nil {
			return fmt.Errorf("%s: %w", inputs[i].Name, err)
		}
		last := d.Sources[i]
		if j := slices.IndexFunc(d.Sources, func(x Source) bool { return x.SHA256 == last.SHA256 }); j < i {
			return fmt.Errorf("%s and %s have the same content (SHA-256 %.12s): want each run once", inputs[j].Name,
				inputs[i].Name, last.SHA256)
		}
		for _, f := range figures {
			all = append(all, inputFigure{f, &inputs[i]})
		}
	}
	d.distinguish(all)
	out := csv.NewWriter(to)
	header := append(slices.Clone(d.Format.Columns.Factors), repetitionColumn, metricColumn, unitColumn, valueColumn)
	if d.Format.Columns.Occasion != "" {
		header = append(header, occasionColumn)
	}
	_ = out.Write(header)
	seen := map[string]int{} // repetitions by levels, occasion and metric
	for _, f := range all {
		row := f.row(d.Format.Columns.Factors)
		k := f.trialOf(d.Format.Columns.Factors)
		seen[k]++
		row = append(row, strconv.Itoa(seen[k]), f.Name, f.Unit, strconv.FormatFloat(f.Value, 'g', -1, 64))
		if d.Format.Columns.Occasion != "" {
			row = append(row, f.input.Occasion)
		}
		_ = out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// trialOf is equal for figures that are repetitions of each other.
func (f *inputFigure) trialOf(factors []string) string {
	return fmt.Sprintf("%q", append(f.row(factors), f.input.Occasion, f.Name))
}

// distinguish looks at the options of the figures of each metric. Those that differ among repetitions become part of
// the name in all figures of the metric, so that different measurements are no repetitions. Those that differ only
// between levels are a flag: the levels ran different workloads.
func (d *Description) distinguish(all []inputFigure) {
	byName := map[string][]*inputFigure{}
	var names []string
	for i := range all {
		if byName[all[i].Name] == nil {
			names = append(names, all[i].Name)
		}
		byName[all[i].Name] = append(byName[all[i].Name], &all[i])
	}
	type difference struct{ text, level string }
	var differences []difference
	for _, name := range names {
		figures := byName[name]
		within := d.differing(figures, func(f *inputFigure) string { return f.trialOf(d.Format.Columns.Factors) })
		between := d.differing(figures, func(*inputFigure) string { return "" })
		for _, key := range between {
			if slices.Contains(within, key) {
				continue
			}
			var levels []string
			for _, f := range figures {
				text := fmt.Sprintf("%s %s=%s", f.input.Level, key, given(f.Options[key]))
				if !slices.Contains(levels, text) {
					levels = append(levels, text)
				}
			}
			text := strings.Join(levels, ", ")
			if !slices.ContainsFunc(differences, func(x difference) bool { return x.text == text }) {
				differences = append(differences, difference{text, figures[0].input.Level})
			}
		}
		for _, f := range figures {
			var suffix []string
			for _, key := range within {
				suffix = append(suffix, key+"="+given(f.Options[key]))
			}
			if len(suffix) > 0 {
				f.Name += " [" + strings.Join(suffix, ", ") + "]"
			}
		}
	}
	for _, x := range differences {
		d.Flags = append(d.Flags, Flag{Name: WorkloadsDiffer, Severity: Warning, Level: x.level, Source: "options",
			Evidence: "the levels ran different workloads: " + x.text})
	}
}

func given(value string) string {
	if value == "" {
		return "(default)"
	}
	return value
}

// differing are the options that differ among figures of the same group, sorted.
func (d *Description) differing(figures []*inputFigure, group func(*inputFigure) string) []string {
	keys, first := map[string]bool{}, map[string]map[string]string{}
	for _, f := range figures {
		g := group(f)
		before, ok := first[g]
		if !ok {
			first[g] = f.Options
			continue
		}
		for key := range f.Options {
			keys[key] = keys[key] || f.Options[key] != before[key]
		}
		for key := range before {
			keys[key] = keys[key] || f.Options[key] != before[key]
		}
	}
	maps.DeleteFunc(keys, func(_ string, differs bool) bool { return !differs })
	return slices.Sorted(maps.Keys(keys))
}

// figures reads the figures of an input, and adds their factors to the columns.
func (d *Description) figures(tools []Tool, in *Input) ([]Figure, error) {
	text, source, err := readInput(*in)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("it has no text: all its lines are empty")
	}
	text, prefix, err := decode.WithoutPrefixes(text)
	if err != nil {
		return nil, err
	}
	t, err := recognise(tools, text)
	if err != nil {
		return nil, err
	}
	r, err := t.Read(text)
	if err != nil {
		return nil, err
	}
	if len(r.Figures) == 0 {
		return nil, fmt.Errorf("it has no figures: want %s", t.What)
	}
	source.Tool = t.Name
	d.Sources = append(d.Sources, source)
	if d.Importer == "" {
		d.Importer = t.Name
	} else if d.Importer != t.Name {
		d.Importer = "several"
	}
	if prefix != "" {
		r.Flags = append(r.Flags, Flag{Name: "prefixRemoved", Severity: Info, Evidence: "removed: " + prefix})
	}
	for _, f := range r.Flags {
		f.Level, f.Source = in.Level, source.Name
		d.Flags = append(d.Flags, f)
	}
	return r.Figures, d.addFactors(r.Figures, in)
}

// addFactors checks figures, and adds their factors to the columns.
func (d *Description) addFactors(figures []Figure, in *Input) error {
	c := &d.Format.Columns
	for _, f := range figures {
		if math.IsNaN(f.Value) || math.IsInf(f.Value, 0) {
			return fmt.Errorf("%s is %v: want a finite number", f.Name, f.Value)
		}
		for _, l := range f.Levels {
			if l.Factor == c.Factors[0] && !in.Default && l.Level != in.Level {
				return fmt.Errorf("%s has %s %s, but the file is given as %s: leave out the level of the file, or name "+
					"its factor otherwise (--factor)", f.Name, l.Factor, l.Level, in.Level)
			}
			if !slices.Contains(c.Factors, l.Factor) {
				c.Factors = append(c.Factors, l.Factor)
			}
		}
		if len(c.Factors) > maxFactors {
			return fmt.Errorf("%s: more than %d factors", f.Name, maxFactors)
		}
	}
	return nil
}

// recognise returns the tool that wrote a text.
func recognise(tools []Tool, text string) (*Tool, error) {
	if len(tools) == 1 {
		return &tools[0], nil
	}
	var found, all []string
	var t *Tool
	for i := range tools {
		all = append(all, tools[i].Name)
		if tools[i].Is(text) {
			t = &tools[i]
			found = append(found, t.Name)
		}
	}
	switch len(found) {
	case 1:
		return t, nil
	case 0:
		return nil, fmt.Errorf("it is not recognised as the output of a tool that this program reads: name the tool, --tool "+
			"%s; or make it a CSV file and use cnsbench import csv", strings.Join(all, "|"))
	}
	return nil, fmt.Errorf("it may be the output of %s: name the tool, --tool NAME", strings.Join(found, " or "))
}

// row has the level of each factor.
func (f *inputFigure) row(factors []string) []string {
	row := append([]string{f.input.Level}, slices.Repeat([]string{noLevel}, len(factors)-1)...)
	for _, l := range f.Levels {
		row[slices.Index(factors, l.Factor)] = l.Level
	}
	return row
}

// readInput reads the text of a file.
func readInput(in Input) (string, Source, error) {
	f, err := in.Open()
	if err != nil {
		return "", Source{}, err
	}
	defer f.Close()
	sum, size := sha256.New(), &counter{}
	whole := decode.Tee(f, io.MultiWriter(sum, size))
	text, err := decode.Text(whole, maxOutput)
	if err != nil {
		return "", Source{}, err
	}
	if _, err := io.Copy(io.Discard, whole); err != nil { // what follows a compressed stream
		return "", Source{}, err
	}
	return text, Source{Name: filepath.Base(in.Name), SHA256: hex.EncodeToString(sum.Sum(nil)), Bytes: size.n}, nil
}
