package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/catalog"
	"github.com/cnsbench/cnsbench/internal/export/index"
	"github.com/cnsbench/cnsbench/internal/visible"
)

func newIndex(s *streams) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "index DIR...",
		Short: "Make an SQLite index of many bundles",
		Long: `Makes an SQLite database of the bundles in and beneath directories, for queries over
runs: runs, objectives, flags, figures, operations and their spans
(docs/reference/export.md has the tables and examples). An existing file is replaced.
Bundles that cannot be read, or whose run is in progress, are in the table "unreadable".`,
		Example: "  cnsbench index results --out index.sqlite",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			entries, err := catalog.Find(args)
			if err != nil {
				return err
			}
			return failed(makeIndex(ctx, s, out, entries))
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "index.sqlite", "file to write")
	outIsFile(c)
	return c
}

// makeIndex writes the index beside its place and renames it.
func makeIndex(ctx context.Context, s *streams, out string, entries []catalog.Entry) error {
	var sources []index.Source
	broken, searches := map[string]string{}, index.Searches{}
	for _, e := range entries {
		switch e.Kind {
		case catalog.KindBundle:
			sources = append(sources, index.Source{Path: e.Path, Study: e.Study, Trial: indexTrial(e.Trial)})
		case catalog.KindBroken:
			broken[e.Path] = e.Error
		case catalog.KindStudy:
			if e.Search == "" {
				continue
			}
			if found, err := foundAt(e.Path); err != nil {
				broken[e.Path] = err.Error()
			} else {
				searches[e.Path] = found
			}
		}
	}
	if len(sources) == 0 {
		warnMissing(s, broken)
		if len(broken) > 0 {
			return fmt.Errorf("no bundle can be read: %d found, all broken", len(broken))
		}
		return errors.New("no bundle found: want directories with bundles in or beneath them")
	}
	r, err := writeIndex(ctx, out, sources, searches, broken)
	if err != nil {
		return err
	}
	warnMissing(s, r.Unreadable)
	visible.Fprintf(s.out, "%s: %s, %s\n", out, count(int(r.Runs), "run"), count(int(r.Ops), "op"))
	return nil
}

// writeIndex writes the index beside its place, or where temporary files are if that is no file, and puts it there.
func writeIndex(ctx context.Context, out string, sources []index.Source, searches index.Searches,
	broken map[string]string) (r index.Result, err error) {
	o, err := outFileAt(out)
	if err != nil {
		return r, err
	}
	beside := os.TempDir()
	if o.whole != "" {
		beside = filepath.Dir(o.whole)
	}
	dir, err := os.MkdirTemp(beside, ".cnsbench-*")
	if err != nil {
		return r, o.failed(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "index")
	r, err = index.Make(ctx, path, sources, searches, broken)
	switch {
	case err != nil:
	case o.whole != "":
		err = o.take(path)
	default:
		err = writeFile(ctx, out, func(w io.Writer) error {
			made, err := bounded.OpenRegular(path)
			if err != nil {
				return err
			}
			defer made.Close()
			_, err = io.Copy(w, made)
			return err
		})
		return r, err
	}
	if err != nil {
		return r, o.failed(err)
	}
	return r, nil
}

// warnMissing prints which bundles are not in the index, and why.
func warnMissing(s *streams, why map[string]string) {
	for _, path := range slices.Sorted(maps.Keys(why)) {
		visible.Fprintf(s.err, "warning: %s is not in the index: %s\n", path, why[path])
	}
}

// indexTrial is the place of a bundle in its study as the index has it.
func indexTrial(t *catalog.Trial) *index.Trial {
	if t == nil {
		return nil
	}
	of := &index.Trial{Occasion: t.Occasion, Block: t.Block, Repetition: t.Repetition, AA: t.AA}
	for _, l := range t.Levels {
		of.Levels = append(of.Levels, index.Level{Factor: l.Factor, Value: l.Value})
	}
	for _, l := range t.Draws {
		of.Levels = append(of.Levels, index.Level{Factor: l.Factor, Value: l.Value, Drawn: true})
	}
	return of
}
