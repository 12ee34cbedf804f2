package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/output"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// outputFile is an output with a fileSpec.
type outputFile struct {
	name    string
	files   map[string]string // by content, see plan.OutputFiles
	actions map[string]bool
}

// outputFilesOf are the outputs of a Benchmark that are files of the bundle.
func outputFilesOf(b *v1alpha1.Benchmark) []outputFile {
	var list []outputFile
	for _, o := range b.Spec.Outputs {
		if o.FileSpec != nil {
			list = append(list, outputFile{string(o.Name), plan.OutputFiles(o.FileSpec), actionsOf(b, o.Name)})
		}
	}
	return list
}

// actionsOf are the actions whose results an output receives.
func actionsOf(b *v1alpha1.Benchmark, output v1alpha1.Name) map[string]bool {
	actions := map[string]bool{}
	for _, a := range b.Spec.Actions {
		if a.Outputs != nil && a.Outputs.OutputName == output {
			actions[string(a.Name)] = true
		}
	}
	return actions
}

// isPending reports whether a file of the output has not been written.
func (o *outputFile) isPending(b *bundle.Bundle) bool {
	for _, name := range o.files {
		if !b.HasOutput(name) {
			return true
		}
	}
	return false
}

// write writes the files of the output until ctx ends, and returns the number of their documents.
func (o *outputFile) write(ctx context.Context, b *bundle.Bundle, s *summary.Summary) (bundle.OutputStats, error) {
	st := bundle.OutputStats{Name: o.name}
	n, err := output.Count(b, s, o.actions)
	for _, content := range slices.Sorted(maps.Keys(o.files)) {
		if err != nil {
			break
		}
		err = bundle.WriteOutput(b.Dir, o.files[content], func(w io.Writer) error {
			return o.content(&stoppable{ctx, w}, content, b, s)
		})
	}
	if err != nil {
		st.Pending, st.Error = n, err.Error()
		return st, fmt.Errorf("output %s: %w", o.name, err)
	}
	st.Delivered = n
	return st, nil
}

// content writes one of the files.
func (o *outputFile) content(w io.Writer, content string, b *bundle.Bundle, s *summary.Summary) error {
	switch content {
	case "ops":
		t, err := table.OpsOf(b, o.actions)
		if err != nil {
			return err
		}
		return t.Write(w, table.CSV)
	case "figures":
		return table.FiguresOf(s).Write(w, table.CSV)
	}
	return output.WriteLines(w, b, s, o.actions)
}

// writeFiles writes the outputs that are files, prints those that could not be written and returns the counts of all.
func writeFiles(ctx context.Context, s *streams, list []outputFile, b *bundle.Bundle,
	sum *summary.Summary) (stats []bundle.OutputStats) {
	for _, o := range list {
		st, err := o.write(ctx, b, sum)
		if err != nil {
			visible.Fprintf(s.err, "warning: %v; write it later: cnsbench export --pending %s\n", err, b.Dir)
		}
		stats = append(stats, st)
	}
	return stats
}

// printFiles prints where the files of outputs are.
func printFiles(s *streams, list []outputFile, dir string) {
	for _, o := range list {
		for _, content := range slices.Sorted(maps.Keys(o.files)) {
			visible.Fprintf(s.out, "output %s: %s\n", o.name, filepath.Join(dir, bundle.OutputsDir, o.files[content]))
		}
	}
}
