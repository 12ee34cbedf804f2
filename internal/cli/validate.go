package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newValidate(s *streams) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use: "validate FILE [FILE…]", Short: "Check a Benchmark and list all problems",
		Long: `Checks a Benchmark and lists all problems with file and line. If it can reach the
cluster of --engine kubernetes, it checks classes and libraries, too.`,
		Example: "  cnsbench validate benchmark.yaml storageclass.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.offline = true
			p, _, _, err := load(cmd.Context(), s, &f, args)
			if err != nil {
				return err
			}
			fmt.Fprintf(s.out, "%s is valid: %s, %s, %s\n", p.Name, count(len(p.Actions), "action"),
				count(len(p.Rates), "rate"), count(len(p.SLOs), "SLO"))
			return nil
		},
	}
	f.addPlanFlags(c)
	return c
}
