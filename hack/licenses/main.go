// Licenses checks the licences of a program's modules, as a CycloneDX SBOM has them, against a list of those under
// which the program may be distributed.
//
//	licenses SBOM.json
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// permitted are SPDX identifiers of licences without conditions on the rest of the program.
var permitted = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "Unlicense",
	"Zlib"}

// read are modules whose licence file the detector does not recognise, and the licence that a person has read there.
var read = map[string]string{}

type bom struct {
	Components []component `json:"components"`
}

type component struct {
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	Licenses []choice `json:"licenses"`
	Evidence struct {
		Licenses []choice `json:"licenses"`
	} `json:"evidence"`
}

type choice struct {
	License struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"license"`
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(args []string, w io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: licenses SBOM.json")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var b bom
	if err := json.Unmarshal(text, &b); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if len(b.Components) == 0 {
		return fmt.Errorf("%s has no components", args[0])
	}
	counts, err := check(b.Components)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: %d modules: %s\n", args[0], len(b.Components), counts)
	return nil
}

// check returns how many modules have which licence, or an error with all modules that have none of the permitted ones.
func check(components []component) (string, error) {
	count := map[string]int{}
	var errs []error
	for _, c := range components {
		found := licenses(&c)
		i := slices.IndexFunc(found, func(id string) bool { return slices.Contains(permitted, id) })
		if i < 0 {
			errs = append(errs, fmt.Errorf("module %s %s has licences %q: none is permitted; read its licence, and "+
				"replace the module, or add the licence to hack/licenses", c.Name, c.Version, found))
			continue
		}
		count[found[i]]++
	}
	var words []string
	for id, n := range count {
		words = append(words, fmt.Sprintf("%s %d", id, n))
	}
	slices.Sort(words)
	return strings.Join(words, ", "), errors.Join(errs...)
}

func licenses(c *component) (ids []string) {
	if id := read[c.Name]; id != "" {
		return []string{id}
	}
	for _, l := range append(c.Licenses, c.Evidence.Licenses...) {
		if l.License.ID != "" {
			ids = append(ids, l.License.ID)
		} else if l.License.Name != "" {
			ids = append(ids, l.License.Name)
		}
	}
	return ids
}
