// Package scaffold makes the files of a workload of a user's own from a template of the library.
package scaffold

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/cnsbench/cnsbench/library"
)

// placeholder is the name of the workload in the templates.
const placeholder = "my-workload"

// folder has the templates in the library.
const folder = "templates"

// Default is the template that is used if none is named.
const Default = "script"

// maxName leaves room for the names of instances and objects.
const maxName = 40

var names = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// Template is a template and what an entry made of it does.
type Template struct{ Name, Text string }

// Templates are the templates, the default one first.
func Templates() []Template {
	return []Template{
		{Default, "a shell script with a parser script"},
		{"fio", "fio by a job file"},
		{"server", "a server and its client, with a parser script"},
	}
}

// CheckName refuses a name that an entry, an action and a Benchmark cannot all have.
func CheckName(name string) error {
	if len(name) > maxName || !names.MatchString(name) {
		return fmt.Errorf("invalid name %q: want at most %d lower-case letters, digits and -, a letter first and no - at "+
			"the end", name, maxName)
	}
	return nil
}

// Files returns the files of the workload's folder by name.
func Files(template, name string) (map[string][]byte, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	dir := path.Join(folder, template)
	list, err := fs.ReadDir(library.Templates, dir)
	if err != nil || template == "" {
		return nil, fmt.Errorf("template %q not found: want one of %s", template, strings.Join(templateNames(), ", "))
	}
	files := map[string][]byte{}
	for _, f := range list {
		text, err := fs.ReadFile(library.Templates, path.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		files[f.Name()] = bytes.ReplaceAll(text, []byte(placeholder), []byte(name))
	}
	return files, nil
}

func templateNames() (names []string) {
	for _, t := range Templates() {
		names = append(names, t.Name)
	}
	return names
}

// Benchmark returns a Benchmark that runs the workload from the folder of workloads at a path relative to the file.
func Benchmark(name, path string) []byte {
	return fmt.Appendf(nil, `# Runs the workload %[1]s. Another storage: --set %[1]s.storageClass=NAME
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: %[1]s}
spec:
  library:
    - folderSpec: {path: %[2]q} # has the folder %[1]s; the path counts from this file
  actions:
    - name: %[1]s
      createObjSpec: {workload: %[1]s, count: 1, vars: {storageClass: hostdir}}
`, name, path)
}
