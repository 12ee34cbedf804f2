// Command arrows counts, for each package, the arrows between its files that run back up.
//
// An arrow goes from file A to file B if A uses a declaration of B: a type, function, method, field, variable or
// constant. The files are put in the order in which the fewest arrows run from a lower file to a higher one, as far as
// a greedy search finds it. The arrows that still run back up are the circles within the package.
//
//	go run ./hack/arrows [-v] [-most PERCENT] [PACKAGE...]
//
// It prints the arrows back, all arrows and the share for each package with more than one file, largest share first.
// With -most it fails if a package with ten arrows or more has a larger share. -v also lists the order and the arrows.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// fewest is the number of arrows from which -most applies: one arrow back of five is no pattern.
const fewest = 10

func main() {
	verbose := flag.Bool("v", false, "list the order of the files and the arrows that run back")
	most := flag.Float64("most", 100, "fail if a package has a larger `percentage` of arrows back")
	flag.Parse()
	if err := run(os.Stdout, *verbose, *most, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "arrows:", err)
		os.Exit(1)
	}
}

// goPackage is what go list says of a package.
type goPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// result is the count of a package.
type result struct {
	path  string
	files []string // in order, highest first
	all   int
	back  []string // "low.go -> high.go: name"
}

func (r *result) share() float64 { return 100 * float64(len(r.back)) / float64(max(r.all, 1)) }

func run(out io.Writer, verbose bool, most float64, patterns []string) error {
	if len(patterns) == 0 {
		patterns = []string{"./internal/..."}
	}
	packages, err := list(patterns)
	if err != nil {
		return err
	}
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	var results []*result
	for _, p := range packages {
		if p.DepOnly || len(p.GoFiles) < 2 {
			continue
		}
		arrows, err := arrowsOf(p, exports)
		if err != nil {
			return fmt.Errorf("package %s: %w", p.ImportPath, err)
		}
		results = append(results, count(p.ImportPath, arrows))
	}
	slices.SortFunc(results, func(a, b *result) int {
		return cmp.Or(cmp.Compare(b.share(), a.share()), cmp.Compare(a.path, b.path))
	})
	var wrong []error
	for _, r := range results {
		fmt.Fprintf(out, "%3d of %3d  %3.0f %%  %s\n", len(r.back), r.all, r.share(), r.path)
		if verbose {
			fmt.Fprintf(out, "    order: %v\n", r.files)
			for _, a := range r.back {
				fmt.Fprintln(out, "   ", a)
			}
		}
		if r.all >= fewest && r.share() > most {
			wrong = append(wrong, fmt.Errorf("package %s: %.0f %% of the arrows run back up, want at most %.0f %%", r.path,
				r.share(), most))
		}
	}
	return errors.Join(wrong...)
}

// list returns the packages and all that they import, with export data.
func list(patterns []string) ([]*goPackage, error) {
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", //nolint:noctx // a command of the developer's
		"-json=ImportPath,Dir,Export,GoFiles,DepOnly"}, patterns...)...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []*goPackage
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		p := &goPackage{}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, p)
	}
}

// arrow is a pair of files: the first uses a declaration of the second.
type arrow struct{ from, to string }

// arrowsOf returns the arrows of a package, with the name of one declaration that makes each.
func arrowsOf(p *goPackage, exports map[string]string) (map[arrow]string, error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	lookup := func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", lookup)}
	self, err := config.Check(p.ImportPath, fset, files, info)
	if err != nil {
		return nil, err
	}
	fileOf := func(at token.Pos) string { return filepath.Base(fset.Position(at).Filename) }
	arrows := map[arrow]string{}
	for ident, object := range info.Uses {
		if object.Pkg() != self || !object.Pos().IsValid() {
			continue
		}
		a := arrow{fileOf(ident.Pos()), fileOf(object.Pos())}
		if name, ok := arrows[a]; a.from != a.to && (!ok || object.Name() < name) {
			arrows[a] = object.Name()
		}
	}
	return arrows, nil
}

// count orders the files and counts the arrows that run back.
func count(path string, arrows map[arrow]string) *result {
	r := &result{path: path, all: len(arrows)}
	names := map[string]bool{}
	for a := range arrows {
		names[a.from], names[a.to] = true, true
	}
	r.files = order(slices.Sorted(maps.Keys(names)), arrows)
	rank := map[string]int{}
	for i, f := range r.files {
		rank[f] = i
	}
	for a, name := range arrows {
		if rank[a.from] > rank[a.to] {
			r.back = append(r.back, fmt.Sprintf("%s -> %s: %s", a.from, a.to, name))
		}
	}
	slices.Sort(r.back)
	return r
}

// order puts files in an order with few arrows from a lower file to a higher one: the heuristic of Eades, Lin and Smyth
// for feedback arc sets (1993), then moves of single files as long as one helps.
func order(files []string, arrows map[arrow]string) []string {
	left := slices.Clone(files)
	var top, bottom []string
	for len(left) > 0 {
		best, bestAt, end := -len(arrows)-1, 0, 0 // end: 1 the file is used by none of the rest, -1 it uses none
		for i, f := range left {
			out, in := 0, 0
			for _, g := range left {
				if _, ok := arrows[arrow{f, g}]; ok {
					out++
				}
				if _, ok := arrows[arrow{g, f}]; ok {
					in++
				}
			}
			switch {
			case out == 0:
				bestAt, end = i, -1
			case in == 0:
				bestAt, end = i, 1
			case out-in > best:
				best, bestAt = out-in, i
				continue
			default:
				continue
			}
			break
		}
		if end < 0 {
			bottom = append(bottom, left[bestAt])
		} else {
			top = append(top, left[bestAt])
		}
		left = slices.Delete(left, bestAt, bestAt+1)
	}
	slices.Reverse(bottom)
	list := append(top, bottom...)
	for improve(list, arrows) {
	}
	return list
}

// improve moves one file to a place where fewer arrows run back. It returns false if there is none.
func improve(list []string, arrows map[arrow]string) bool {
	for i, f := range list {
		rest := slices.Delete(slices.Clone(list), i, i+1)
		// cost of f at each place: arrows from files below to f, and from f to files above.
		cost := 0
		for _, g := range rest {
			if _, ok := arrows[arrow{g, f}]; ok {
				cost++
			}
		}
		costs := []int{cost}
		for _, g := range rest { // f moves below g
			if _, ok := arrows[arrow{g, f}]; ok {
				cost--
			}
			if _, ok := arrows[arrow{f, g}]; ok {
				cost++
			}
			costs = append(costs, cost)
		}
		if at := slices.Index(costs, slices.Min(costs)); costs[at] < costs[i] {
			copy(list, slices.Insert(rest, at, f))
			return true
		}
	}
	return false
}
