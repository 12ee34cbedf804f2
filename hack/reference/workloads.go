package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/workload"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// libraryBlock matches the place of the entries of the built-in library.
var libraryBlock = regexp.MustCompile(`(?s)(<!-- library -->\n).*?(<!-- /library -->)`)

// parserName matches the annotation with the parser of an entry.
var parserName = regexp.MustCompile(`\bparser: ([\w-]+)`)

// writeLibrary replaces the entries of the library in the page of workloads.
func writeLibrary(folder string) error {
	page := filepath.Join(folder, "workloads.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	library, err := plan.BuiltIn()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, name := range library.Names() {
		if e, _ := library.Get(name); name != "object" { // it has a page of its own
			entry(&out, e)
		}
	}
	fmt.Fprintln(&out)
	text = libraryBlock.ReplaceAllFunc(text, func(old []byte) []byte {
		m := libraryBlock.FindSubmatch(old)
		return bytes.Join([][]byte{m[1], out.Bytes(), m[2]}, nil)
	})
	return os.WriteFile(page, text, 0o644)
}

// entry writes the variables of an entry and the metrics of its built-in parser.
func entry(out *bytes.Buffer, e *workload.Entry) {
	fmt.Fprintf(out, "\n### %s\n\n%s\n\n| variable | type | default | description |\n|---|---|---|---|\n", e.Name,
		wrapped(e.Description))
	for _, v := range e.Variables() {
		value, ok := e.Defaults[v]
		switch {
		case !ok:
			value = "required"
		case value != "":
			value = "`" + value + "`"
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", v, e.Types[v], value, cell(e.Meanings[v]))
	}
	for _, p := range e.Parts {
		m := parserName.FindStringSubmatch(p.Text)
		if m == nil {
			continue
		}
		if metrics := parser.Declared(m[1]); len(metrics) > 0 {
			fmt.Fprintf(out, "\n| metric | unit | kind | better | meaning |\n|---|---|---|---|---|\n")
			for _, d := range metrics {
				fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s |\n", d.Name, d.Unit, d.Kind, d.Better, cell(d.Meaning))
			}
		}
	}
}
