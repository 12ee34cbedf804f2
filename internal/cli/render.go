package cli

import (
	"fmt"
	"path/filepath"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// absolutePaths makes the paths in a Benchmark absolute, which are relative to its file.
func absolutePaths(b *v1alpha1.Benchmark, file string) error {
	if file == "-" {
		return nil
	}
	var paths []*string
	for i := range b.Spec.Rates {
		if t := b.Spec.Rates[i].TraceRateSpec; t != nil {
			paths = append(paths, &t.Source)
		}
	}
	for i := range b.Spec.Library {
		if f := b.Spec.Library[i].FolderSpec; f != nil {
			paths = append(paths, &f.Path)
		}
	}
	for _, p := range paths {
		if filepath.IsAbs(*p) {
			continue
		}
		path, err := filepath.Abs(filepath.Join(filepath.Dir(file), *p))
		if err != nil {
			return fmt.Errorf("resolve %s: %w", *p, err)
		}
		*p = path
	}
	return nil
}
