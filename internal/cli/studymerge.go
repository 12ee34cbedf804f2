package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/study"
)

func newStudyMerge(s *streams) *cobra.Command {
	var out string
	var names []string
	c := &cobra.Command{
		Use: "merge DIR DIR [DIR…] --out DIR", Short: "Make one study of the same study on several clusters",
		Long: `Makes one study of studies with the same design that were run on different
clusters. The clusters are one more factor. Bundles are copied; the studies are not
changed.`,
		Example: "  cnsbench study merge east west --out both",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if out == "" {
				return errors.New("--out is missing: the directory of the merged study")
			}
			if len(names) == 0 {
				for _, dir := range args {
					names = append(names, filepath.Base(filepath.Clean(dir)))
				}
			}
			if len(names) != len(args) {
				return fmt.Errorf("%d names for %d studies: want one for each in --names", len(names), len(args))
			}
			dir, err := study.Merge(out, args, names)
			if err != nil {
				return err
			}
			fmt.Fprintf(s.err, "%s has %s of %s\n", out, count(len(dir.Trials), "trial"),
				count(len(dir.Occasions), "occasion"))
			var f studyFlags
			return f.show(s, dir)
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "", "directory of the merged study")
	c.Flags().StringSliceVar(&names, "names", nil, "names of the clusters, in order (default those of the directories)")
	return c
}
