package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/config/schema"
	"github.com/cnsbench/cnsbench/internal/plan"
)

func newValidate(s *streams) *cobra.Command {
	var f runFlags
	var printSchema, render bool
	c := &cobra.Command{
		Use: "validate {FILE [FILE…] | --schema}", Short: "Check a Benchmark or an object workload and list all problems",
		Long: `Checks a Benchmark and lists all problems with file and line. If it can reach the
cluster of --engine kubernetes, it checks classes and libraries, too; on engine local it
names the programs that this machine lacks, and what brings them. With --output
json it prints {valid, name, problems, warnings}; a problem has file, line, column, path,
message and hint, where they are known.

With --render it prints the Benchmark with its default values, and every manifest that it
creates. FILE can be an object workload (COSBench's XML), too.

With --schema it prints the JSON Schema of the file, with which editors complete and check
it. Names, references, workloads and expressions are checked only by validate itself.

Exit status: 0 valid, 1 there are problems.`,
		Example: `  cnsbench validate benchmark.yaml storageclass.yaml
  cnsbench validate --output json benchmark.yaml
  cnsbench validate --render --set spec.runtime=10s benchmark.yaml
  cnsbench validate --schema > cnsbench.schema.json`,
		Args: func(c *cobra.Command, args []string) error {
			if printSchema {
				return cobra.NoArgs(c, args)
			}
			return cobra.MinimumNArgs(1)(c, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if printSchema {
				_, err := s.out.Write(schema.Benchmark)
				return err
			}
			if data, err := readFile(args[0]); isObjectWorkload(args) || len(args) == 1 && err == nil && isXML(data) {
				return lintObject(s, args[0], render || f.output == "json")
			}
			f.offline, f.quiet = true, f.output == "json" && !render
			p, _, _, err := load(cmd.Context(), s, &f, args)
			if f.quiet {
				return writeValidation(s, p, err)
			}
			if err != nil {
				return err
			}
			if render {
				return printRendered(s, p, args[0])
			}
			fmt.Fprintf(s.out, "%s is valid: %s, %s, %s\n", p.Name, count(len(p.Actions), "action"),
				count(len(p.Rates), "rate"), count(len(p.SLOs), "SLO"))
			f.warnPrograms(s, p)
			return nil
		},
	}
	f.addPlanFlags(c)
	outputFlag(c, &f.output)
	c.Flags().BoolVar(&render, "render", false, "print the Benchmark with its defaults, and its manifests")
	c.Flags().BoolVar(&printSchema, "schema", false, "print the JSON Schema of the file, for editors")
	return c
}

// printRendered prints a Benchmark with its defaults, and every manifest that it creates.
func printRendered(s *streams, p *plan.Plan, file string) error {
	if err := absolutePaths(p.Benchmark, file); err != nil {
		return err
	}
	text, err := plan.Render(p, "example")
	if err == nil {
		_, err = s.out.Write(text)
	}
	return err
}

// warnPrograms names the programs that this machine lacks, where the engine runs those of this machine.
func (f *runFlags) warnPrograms(s *streams, p *plan.Plan) {
	if !engines()[f.Engine].capabilities.BuiltInDrivers {
		return
	}
	if err := missingPrograms(p); err != nil {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(s.err, "warning: this machine cannot run it: %s\n", strings.TrimSpace(line))
		}
	}
}

// writeValidation prints the result of a validation as JSON. The exit code is that of the error.
func writeValidation(s *streams, p *plan.Plan, err error) error {
	if werr := writeJSON(s.out, validationOf(p, err)); werr != nil || err == nil {
		return werr
	}
	return &exit{code: codeOf(err)}
}

// validationOf is the result of a validation. An error without a place, such as that of a file which cannot be read, is
// a problem, too.
func validationOf(p *plan.Plan, err error) plan.Validation {
	v := plan.Validation{Valid: err == nil, Problems: []plan.Problem{}, Warnings: []plan.Problem{}}
	var found *problemsError
	switch {
	case err == nil:
		v.Name, v.Warnings = p.Name, append(v.Warnings, p.Warnings...)
	case errors.As(err, &found):
		v.Problems = found.problems
	default:
		v.Problems = []plan.Problem{{Message: err.Error()}}
	}
	return v
}
