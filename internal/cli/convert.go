package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/objectspec"
)

func newConvert(s *streams) *cobra.Command {
	return &cobra.Command{
		Use: "convert FILE.xml", Short: "Convert a COSBench workload to a Benchmark",
		Long: `Prints a Benchmark with one action, workload: object, that is equivalent to a
COSBench workload: to run on its own, or beside other workloads and control
operations. Credentials of the file are left out. Notes on standard error list
what the Benchmark expresses differently.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			w, _, err := loadObject(s, args[0], nil)
			if err != nil {
				return err
			}
			if err := absolute(w); err != nil {
				return err
			}
			b, notes, err := objectspec.Convert(w)
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

// absolute makes the paths of a workload absolute: a Benchmark has no others.
func absolute(w *model.Workload) (err error) {
	full := func(path string) string {
		if path == "" || err != nil {
			return path
		}
		path, err = filepath.Abs(path)
		return path
	}
	for i := range w.Stages {
		for j := range w.Stages[i].Works {
			work := &w.Stages[i].Works[j]
			for _, key := range []string{"cafile", "credentials"} {
				for _, settings := range []map[string]string{work.Store.Settings, work.Store.Auth} {
					if settings[key] != "" {
						settings[key] = full(settings[key])
					}
				}
			}
			for k := range work.Ops {
				work.Ops[k].Files = full(work.Ops[k].Files)
			}
		}
	}
	return err
}
