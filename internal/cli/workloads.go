package cli

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
	"github.com/cnsbench/cnsbench/internal/workload"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

func newWorkloads(s *streams) *cobra.Command {
	c := &cobra.Command{Use: "workloads", Short: "List and show the built-in workloads, make and test your own"}
	var output string
	show := &cobra.Command{Use: "show [NAME]", Short: "List the built-in workloads and suites, or show one workload",
		Long: `Lists the built-in workloads and suites; with NAME, shows the variables, metrics and
manifests of a workload. --output csv has then a row for each variable.`,
		Args:    cobra.MaximumNArgs(1),
		Example: "  cnsbench workloads show\n  cnsbench workloads show fio",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listWorkloads(s, output)
			}
			return showWorkload(s, args[0], output)
		}}
	outputFlag(show, &output, "csv")
	c.AddCommand(show, newWorkloadsNew(s), newWorkloadsTest(s), newWorkloadsProfile(s))
	return c
}

// libraryItem is a workload or a suite of the library.
type libraryItem struct {
	Kind        string `json:"kind"` // workload, suite
	Name        string `json:"name"` // as an argument of commands
	Description string `json:"description"`
}

func listWorkloads(s *streams, output string) error {
	library, err := plan.BuiltIn()
	if err != nil {
		return err
	}
	var list []libraryItem
	for _, name := range library.Names() {
		e, _ := library.Get(name)
		list = append(list, libraryItem{"workload", name, summaryOf(e)})
	}
	for _, name := range suites() {
		list = append(list, libraryItem{"suite", suitePrefix + name, describeSuite(name)})
	}
	return s.print(output, list, listTable(list, func(x *libraryItem) []any {
		return []any{x.Kind, x.Name, x.Description}
	}, "kind", "name", "description"), func() error {
		widest, width := 0, terminalOptions(s.out).Width
		for _, x := range list {
			widest = max(widest, len(x.Name))
		}
		for _, x := range list {
			label := fmt.Sprintf("%-*s  ", widest, x.Name)
			if _, err := io.WriteString(s.out, terminal.Hang(label, x.Description, width)); err != nil {
				return err
			}
		}
		return nil
	})
}

// summaryOf is the first line of an entry's description.
func summaryOf(e *workload.Entry) string {
	first, _, _ := strings.Cut(strings.TrimSpace(e.Description), "\n")
	return first
}

// shownWorkload is a workload as workloads show prints it.
type shownWorkload struct {
	Name        string          `json:"name"`
	Origin      string          `json:"origin"`
	Description string          `json:"description"`
	Variables   []shownVariable `json:"variables"`
	Metrics     []shownMetric   `json:"metrics"` // of the built-in parser; none of a script
	Parts       []shownPart     `json:"parts"`
}

type shownVariable struct {
	Name    string  `json:"name"`
	Default *string `json:"default"` // null: the variable is required
	Meaning string  `json:"meaning"`
	Type    string  `json:"type"` // empty: any text
}

// shownMetric is a metric that the parser can report.
type shownMetric struct {
	Name    string           `json:"name"`
	Unit    string           `json:"unit"`
	Kind    metric.Kind      `json:"kind"`
	Better  metric.Direction `json:"better"` // empty: neither
	Meaning string           `json:"meaning"`
}

// shownPart is a manifest or a configuration file.
type shownPart struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// parserName matches the annotation with the parser of an entry.
var parserName = regexp.MustCompile(`\bparser: ([\w-]+)`)

func shown(e *workload.Entry) shownWorkload {
	w := shownWorkload{Name: e.Name, Origin: e.Origin, Description: strings.TrimSpace(e.Description),
		Variables: []shownVariable{}, Metrics: []shownMetric{}, Parts: []shownPart{}}
	for _, name := range e.Variables() {
		v := shownVariable{Name: name, Meaning: e.Meanings[name], Type: e.Types[name].String()}
		if value, ok := e.Defaults[name]; ok {
			v.Default = &value
		}
		w.Variables = append(w.Variables, v)
	}
	for _, p := range e.Parts {
		w.Parts = append(w.Parts, shownPart{p.Key, p.Text})
		m := parserName.FindStringSubmatch(p.Text)
		if m == nil {
			continue
		}
		for _, d := range parser.Declared(m[1]) {
			w.Metrics = append(w.Metrics, shownMetric{d.Name, d.Unit, d.Kind, d.Better, d.Meaning})
		}
	}
	return w
}

func showWorkload(s *streams, name, output string) error {
	library, err := plan.BuiltIn()
	if err != nil {
		return err
	}
	e, ok := library.Get(name)
	if !ok {
		return fmt.Errorf("workload %q not found: want one of %s", name, strings.Join(library.Names(), ", "))
	}
	x := shown(e)
	return s.print(output, x, listTable(x.Variables, func(v *shownVariable) []any {
		return []any{v.Name, known(v.Default), v.Default == nil, v.Type, v.Meaning}
	}, "variable", "default", "required", "type", "meaning"), func() error { return x.print(s.out) })
}

func (x *shownWorkload) print(out io.Writer) error {
	fmt.Fprintf(out, "%s (%s)\n\n%s\n\nvariables:\n", x.Name, x.Origin, x.Description)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, v := range x.Variables {
		value := "(required)"
		if v.Default != nil {
			value = cmp.Or(*v.Default, "(empty)")
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", v.Name, value, v.Meaning, v.Type)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(x.Metrics) > 0 {
		fmt.Fprint(out, "\nmetrics:\n")
	}
	for _, m := range x.Metrics {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", m.Name, m.Unit, m.Kind, m.Better, m.Meaning)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, p := range x.Parts {
		if _, err := fmt.Fprintf(out, "\n--- %s\n%s\n", p.Name, strings.TrimRight(p.Text, "\n")); err != nil {
			return err
		}
	}
	return nil
}
