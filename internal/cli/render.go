package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// absolutePaths makes the paths in a Benchmark absolute, which are relative to its file.
func absolutePaths(b *v1alpha1.Benchmark, file string) error {
	if file == "-" {
		return nil
	}
	var paths []*string
	for i := range b.Spec.Rates {
		if t := b.Spec.Rates[i].TraceRateSpec; t != nil {
			paths = append(paths, &t.Source)
		}
	}
	for i := range b.Spec.Library {
		if f := b.Spec.Library[i].FolderSpec; f != nil {
			paths = append(paths, &f.Path)
		}
	}
	for _, p := range paths {
		if filepath.IsAbs(*p) {
			continue
		}
		path, err := filepath.Abs(filepath.Join(filepath.Dir(file), *p))
		if err != nil {
			return fmt.Errorf("resolve %s: %w", *p, err)
		}
		*p = path
	}
	return nil
}

func newRender(s *streams) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use: "render FILE [FILE…]", Short: "Print a Benchmark with its defaults and manifests",
		Long: `Prints the Benchmark with its default values, and every manifest that it creates.
It needs no cluster.`,
		Example: "  cnsbench render --set spec.runtime=10s examples/quickstart.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.offline = true
			p, _, _, err := load(cmd.Context(), s, &f, args)
			if err != nil {
				return err
			}
			if err := absolutePaths(p.Benchmark, args[0]); err != nil {
				return err
			}
			text, err := plan.Render(p, "example")
			if err != nil {
				return err
			}
			_, err = s.out.Write(text)
			return err
		},
	}
	f.addPlanFlags(c)
	return c
}
