package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/workload/scaffold"
)

// ownLibrary is the default folder of a user's own workloads.
const ownLibrary = "workloads"

func newWorkloadsNew(s *streams) *cobra.Command {
	var template, library string
	var list strings.Builder
	w := tabwriter.NewWriter(&list, 0, 4, 3, ' ', 0)
	for _, t := range scaffold.Templates() {
		fmt.Fprintf(w, "  %s\t%s\n", t.Name, t.Text)
	}
	_ = w.Flush() // a Builder never fails
	c := &cobra.Command{
		Use: "new NAME", Short: "Make a workload of your own from a template", Args: cobra.ExactArgs(1),
		Long: `Makes a workload of your own from a template: the folder NAME in the folder of your
workloads (--library), with manifests, typed variables, scripts and a parser, and
beside that folder NAME.yaml, a Benchmark that runs the workload. Comments in the files
explain each part. It overwrites nothing.

Templates:
` + strings.TrimRight(list.String(), "\n"),
		Example: `  cnsbench workloads new append
  cnsbench workloads test append
  cnsbench run append.yaml`,
		RunE: func(_ *cobra.Command, args []string) error { return newEntry(s, args[0], template, library) },
	}
	c.Flags().StringVar(&template, "template", scaffold.Default, "template: see above")
	c.Flags().StringVar(&library, "library", ownLibrary,
		"folder of your workloads, which spec.library of a Benchmark names")
	return c
}

// newEntry writes the files of a new workload and its Benchmark, all of them or none.
func newEntry(s *streams, name, template, library string) error {
	files, err := scaffold.Files(template, name)
	if err != nil {
		return err
	}
	if err := checkNewEntry(name, library); err != nil {
		return err
	}
	return writeEntry(s, name, library, files)
}

// checkNewEntry returns an error if a workload of that name cannot be made in the folder.
func checkNewEntry(name, library string) error {
	builtIn, err := plan.BuiltIn()
	if err != nil {
		return err
	}
	if _, ok := builtIn.Get(name); ok {
		return fmt.Errorf("%s is a built-in workload, which one of yours would replace: choose another name", name)
	}
	at, err := filepath.Abs(library)
	if err != nil {
		return err
	}
	if here, err := os.Getwd(); err == nil && here == at || filepath.Dir(at) == at {
		return fmt.Errorf("invalid --library %q: want a folder below this one, because every YAML file in it is a workload, "+
			"and %s.yaml is a Benchmark", library, name)
	}
	for _, path := range entryPaths(name, library) {
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s exists and is not overwritten: choose another name, or remove it", path)
		}
	}
	return nil
}

// entryPaths are the folder of a workload and its Benchmark.
func entryPaths(name, library string) []string {
	return []string{filepath.Join(library, name), filepath.Join(filepath.Dir(library), name+".yaml")}
}

// writeEntry writes the files of a workload, its Benchmark last, and prints their names.
func writeEntry(s *streams, name, library string, files map[string][]byte) (err error) {
	paths := entryPaths(name, library)
	dir, benchmark := paths[0], paths[1]
	if err := os.MkdirAll(library, 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir)) // this command made it
		}
	}()
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if err := writeNew(filepath.Join(dir, file), files[file]); err != nil {
			return err
		}
	}
	if err := writeNew(benchmark, scaffold.Benchmark(name, filepath.Base(library))); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s\n", benchmark)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(s.out, "%s\n", filepath.Join(dir, file))
	}
	fmt.Fprintf(s.out, "\nnext: cnsbench workloads test %s\n", dir)
	return nil
}

// writeNew writes a file that does not exist.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists and is not overwritten", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
