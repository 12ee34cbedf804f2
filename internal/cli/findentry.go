package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/entrycheck"
	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// foundEntry is a workload that an argument names.
type foundEntry struct {
	name, origin string
	entry        *workload.Entry // nil: it could not be read
	problems     []entrycheck.Problem
	configs      []plan.File // ConfigMaps beside it
	library      *workload.Library
}

// findEntry finds a workload by its name in a library or among the built-in ones, or by the path of its file or folder.
// An error means that there is none; what is wrong with it are its problems.
func findEntry(name, library string) (*foundEntry, error) {
	builtIn, err := plan.BuiltIn()
	if err != nil {
		return nil, err
	}
	found := &foundEntry{name: name, library: builtIn}
	own, at := ownEntry(name, library)
	switch e, ok := builtIn.Get(name); {
	case at != "":
		err = found.read(at)
	case ok && e.Name == "object":
		return nil, errors.New("the workload object is described by each Benchmark (objectSpec): " +
			"see cnsbench object run --help")
	case ok:
		found.entry, found.origin = e, e.Origin
	default:
		err = found.read(name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint := cmp.Or(hints.Suggest(name, slices.Concat(own, builtIn.Names())), "see cnsbench workloads show")
		return nil, fmt.Errorf("workload %q not found: no file or folder of this name, none in folder %s, and not built "+
			"in (%s)", name, library, hint)
	case err != nil:
		return nil, err
	}
	if found.entry != nil {
		found.name = found.entry.Name
		builtIn.Add(found.entry)
	}
	return found, nil
}

// ownEntry returns the names in a folder of workloads, and the path of the entry of that name; empty: it is not there.
func ownEntry(name, library string) (names []string, path string) {
	files, _ := os.ReadDir(library) // it need not exist
	for _, f := range files {
		own := f.Name()
		if !f.IsDir() {
			own = strings.TrimSuffix(strings.TrimSuffix(own, ".yaml"), ".yml")
		}
		names = append(names, own)
		if own == name {
			path = filepath.Join(library, f.Name())
		}
	}
	return names, path
}

// read reads the entry of a file or a folder.
func (f *foundEntry) read(path string) error {
	f.origin = path
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return f.readFile(path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if inside := workloadsIn(abs); len(inside) > 0 {
		return fmt.Errorf("%s is a folder of workloads: want one of %s", path, strings.Join(inside, ", "))
	}
	e, err := workload.FromFolder(bounded.LinkedFS(filepath.Dir(abs)), filepath.Base(abs), path)
	if err != nil {
		f.problems = []entrycheck.Problem{{Message: err.Error()}}
		return nil //nolint:nilerr // it is a finding of the test
	}
	f.entry = e
	return nil
}

// workloadsIn lists the folders with workloads in a folder.
func workloadsIn(dir string) (names []string) {
	heads, _ := filepath.Glob(filepath.Join(dir, "*", "workload.yaml"))
	for _, h := range heads {
		names = append(names, filepath.Base(filepath.Dir(h)))
	}
	return names
}

// readFile reads the entry among the documents of a file.
func (f *foundEntry) readFile(path string) error {
	text, err := readFile(path)
	if err != nil {
		return err
	}
	entries, configs, problems := plan.Entries([]plan.File{{Name: path, Data: text}})
	for _, p := range problems {
		f.problems = append(f.problems, entrycheck.Problem{Message: p.String()})
	}
	names := entries.Names()
	switch {
	case len(problems) > 0:
		return nil
	case len(names) == 0:
		return fmt.Errorf("%s has no workload: want the name of one, its folder, or a file with its ConfigMap, which has "+
			"the label type: workload", path)
	case len(names) > 1:
		return fmt.Errorf("%s has several workloads (%s): put the one to test into a file of its own", path,
			strings.Join(names, ", "))
	}
	f.entry, _ = entries.Get(names[0])
	for name, cm := range configs {
		cm.APIVersion, cm.Kind = "v1", "ConfigMap"
		text, err := yaml.Marshal(cm)
		if err != nil {
			return err
		}
		f.configs = append(f.configs, plan.File{Name: name, Data: text})
	}
	return nil
}

// describeVar describes a wrong variable of the command line.
func describeVar(e *workload.Error) string {
	hint := e.Hint
	switch {
	case e.Unknown():
		hint = cmp.Or(hints.Suggest(e.Var, e.Known), "it has "+strings.Join(e.Known, ", "))
	case len(e.Known) > 0:
		hint = "one of " + strings.Join(e.Known, ", ")
	}
	if hint == "" {
		return e.Message
	}
	return e.Message + " (" + hint + ")"
}
