package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/internal/plan"
)

func newConvert(s *streams) *cobra.Command {
	return &cobra.Command{
		Use: "convert FILE.xml", Short: "Print the Benchmark that a workload of COSBench is",
		Long: `Prints a Benchmark with one action, workload: object, that does what a workload
of COSBench does: to be run on its own, or to have other workloads and control
operations put beside it. Credentials that stand in the file are left out. What
the Benchmark says otherwise than the file is told on standard error.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			w, _, err := loadObject(s, args[0], nil)
			if err != nil {
				return err
			}
			b, notes, err := plan.Convert(w)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			text, err := yaml.Marshal(map[string]any{"apiVersion": b.APIVersion, "kind": b.Kind, "metadata": map[string]string{"name": b.Name}, "spec": b.Spec})
			if err != nil {
				return err
			}
			for _, n := range notes {
				fmt.Fprintln(s.err, "note:", n)
			}
			_, err = s.out.Write(text)
			return quietPipe(err)
		},
	}
}
