package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/study"
)

func newStudyMerge(s *streams) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "merge [NAME=]DIR [NAME=]DIR… --out DIR", Short: "Make one study of the same study on several clusters",
		Long: `Makes one study of studies with the same design that were run on different
clusters. The clusters are one more factor, with the names of the directories, or NAME.
Bundles are copied; the studies are not changed.`,
		Example: "  cnsbench study merge east=out/1 west=out/2 --out both",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if out == "" {
				return errors.New("--out is missing: the directory of the merged study")
			}
			var names, dirs []string
			for _, arg := range args {
				name, dir := labelled(arg)
				names, dirs = append(names, name), append(dirs, dir)
			}
			dir, err := study.Merge(out, dirs, names)
			if err != nil {
				return err
			}
			fmt.Fprintf(s.err, "%s has %s of %s\n", out, count(len(dir.Trials), "trial"),
				count(len(dir.Occasions), "occasion"))
			return showStudy(s, "text", dir)
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "", "directory of the merged study")
	return c
}
