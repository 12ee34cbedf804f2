package cli

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/library"
)

// suitePrefix marks a built-in suite as an argument for a file.
const suitePrefix = "suite:"

// suites lists the names of built-in suites.
func suites() []string {
	files, err := fs.Glob(library.Suites, "suites/*.yaml")
	if err != nil {
		return nil // the pattern is valid
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(f, "suites/"), ".yaml")
	}
	return files
}

func readSuite(name string) ([]byte, error) {
	text, err := library.Suites.ReadFile("suites/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("suite %q not found: want one of %s", name, strings.Join(suites(), ", "))
	}
	return text, nil
}

// describeSuite is the description of a suite.
func describeSuite(name string) string {
	text, err := readSuite(name)
	if err != nil {
		return ""
	}
	s, _ := plan.LoadStudy([]plan.File{{Name: name, Data: text}})
	if s == nil {
		return ""
	}
	return s.Spec.Description
}
