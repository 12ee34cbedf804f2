package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/cleanup"
	"github.com/cnsbench/cnsbench/internal/object/cosbench"
	oload "github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/registry"
	"github.com/cnsbench/cnsbench/internal/visible"
)

func newObjectCleanup(s *streams) *cobra.Command {
	var look bool
	var endpoints []string
	var run string
	workers := 16
	c := &cobra.Command{
		Use: "cleanup [FILE|BUNDLE]", Short: "Remove the containers that a workload made, with their objects",
		Long: `Removes the containers that the works of type init of a workload make, or that
the run of a bundle has made, with all their objects. Containers without
CNSBench's mark are not touched, and count as left. Use it after a run that was
killed, or whose clean-up failed.

Of --run, or of a BUNDLE whose run this user has started on this machine, the stores and
containers are those that were registered then. For another, which may be somebody
else's, name its stores with --endpoint: credentials are sent nowhere else.

Credentials come from the same places as for object run. A bundle does not contain
those of the workload's file: set them in the environment.

Exit status: 0 nothing is left, 1 wrong file or flags, 2 something is left.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case workers < 1:
				return errors.New("--workers must be at least 1")
			case (len(args) == 1) == (run != ""):
				return errors.New("give one of FILE, BUNDLE and --run")
			}
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			if run != "" {
				entry, err := registry.Open(run)
				if err != nil {
					return fmt.Errorf("run %s: %w", run, err)
				}
				return sweepRun(ctx, s, entry, workers, look)
			}
			if info, err := os.Stat(args[0]); err == nil && info.IsDir() {
				return sweepBundle(ctx, s, args[0], endpoints, workers, look)
			}
			places, err := placesOf(s, args[0])
			if err != nil {
				return err
			}
			return sweepPlaces(ctx, s, places, workers, look)
		},
	}
	c.Flags().BoolVar(&look, "dry-run", false, "only list what exists")
	c.Flags().IntVar(&workers, "workers", workers, "how many objects are deleted at the same time")
	c.Flags().StringVar(&run, "run", "", "ID of a run that this user has started on this machine, in place of a BUNDLE")
	c.Flags().StringArrayVar(&endpoints, "endpoint", nil,
		"URL or directory of a store of a BUNDLE whose run is not registered here; may be repeated")
	return c
}

// placesOf are the containers that a workload's file makes.
func placesOf(s *streams, name string) ([]model.Place, error) {
	w, _, err := loadObject(s, name, nil)
	if err == nil {
		err = checkStores(s, name, w, true)
	}
	if err != nil {
		return nil, err
	}
	warnUnsigned(s, name, w)
	places := model.Places(w, backend.Traits)
	if len(places) == 0 {
		return nil, noPlaces(name)
	}
	return places, nil
}

func noPlaces(name string) error {
	return fmt.Errorf("%s makes no containers in a store that keeps them: it has no work of type init", name)
}

// sweepBundle removes the containers of a bundle's run.
func sweepBundle(ctx context.Context, s *streams, dir string, endpoints []string, workers int, look bool) error {
	if err := bundle.CheckBundle(dir); err != nil {
		return err
	}
	b, err := bundle.Open(dir)
	if err != nil {
		return err
	}
	if b.Live {
		return fmt.Errorf("%s is in use: its run is alive, stop it first", dir)
	}
	entry, err := registry.Open(b.Run.ID)
	if errors.Is(err, registry.ErrUnknown) {
		places, err := placesIn(&b.Run)
		if err != nil {
			return fmt.Errorf("%s: read plan of run.json: %w", dir, err)
		}
		if len(places) == 0 {
			err = noPlaces(dir)
		}
		if err == nil && len(endpoints) == 0 && !madeContainers(dir) {
			visible.Fprintln(s.out, "nothing is left of this run, which is not registered for this user on this machine")
			return nil
		}
		if err == nil {
			err = namedStores(b.Run.ID, places, endpoints)
		}
		if err != nil {
			return err
		}
		return sweepPlaces(ctx, s, places, workers, look)
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", b.Run.ID, err)
	}
	if err := entry.CheckBundle(dir); err != nil {
		return errors.Join(err, entry.Close())
	}
	return sweepRun(ctx, s, entry, workers, look)
}

// sweepRun removes the containers of a registered run, and forgets it if nothing else of it is left.
func sweepRun(ctx context.Context, s *streams, entry *registry.Run, workers int, look bool) (err error) {
	forget := false
	defer func() {
		if forget {
			err = errors.Join(err, entry.Remove())
		} else {
			err = errors.Join(err, entry.Close())
		}
	}()
	var places []model.Place
	if len(entry.Places) == 0 {
		return noPlaces("run " + entry.Identity.RunID)
	}
	if err := json.Unmarshal(entry.Places, &places); err != nil {
		return err
	}
	if err := sweepPlaces(ctx, s, places, workers, look); err != nil || look {
		return err
	}
	open, err := bundle.LedgerIn(entry.Dir())
	if err != nil || len(open) > 0 {
		return err
	}
	err = owned.RemoveAll(entry.Identity.Scratch)
	forget = err == nil
	return err
}

// namedStores refuses places in stores that the command line does not name: the bundle may be somebody else's, and would
// get this user's credentials, or name this user's directories.
func namedStores(run string, places []model.Place, endpoints []string) error {
	named := func(where string) bool {
		return slices.ContainsFunc(endpoints, func(e string) bool { return within(where, e) })
	}
	for i := range places {
		s := &places[i].Store
		for _, settings := range []map[string]string{s.Settings, s.Auth} {
			for _, key := range slices.Sorted(maps.Keys(settings)) {
				if named(settings[key]) { // a path may have a comma
					continue
				}
				for where := range strings.SplitSeq(settings[key], ",") {
					where = strings.TrimSpace(where)
					if strings.ContainsAny(where, "/:") && !named(where) {
						return fmt.Errorf("run %s is not registered for this user on this machine: it was cleaned up, or its "+
							"bundle is somebody else's. Nothing was touched. If %s %q of its store %s is yours, add --endpoint %s",
							run, key, where, s.Kind, shellWord(where))
					}
				}
			}
		}
	}
	return nil
}

// within reports whether a URL or path is another or below it.
func within(where, above string) bool {
	above = strings.TrimSuffix(above, "/")
	rest, ok := strings.CutPrefix(where, above)
	return above != "" && ok && (rest == "" || rest[0] == '/')
}

// placesIn are the containers of a bundle's run.
func placesIn(r *bundle.Run) (places []model.Place, err error) {
	if r.ObjectsOnly() {
		var w model.Workload
		err = json.Unmarshal(r.Plan, &w)
		return model.Places(&w, backend.Traits), err
	}
	if len(r.Plan) == 0 {
		return nil, nil
	}
	var f facts
	err = json.Unmarshal(r.Plan, &f)
	for _, o := range f.Budget.Objects {
		for _, text := range o.Makes {
			var p model.Place
			err = errors.Join(err, json.Unmarshal(text, &p))
			places = append(places, p)
		}
	}
	return places, err
}

// sweepPlaces removes the containers of places and prints the result.
func sweepPlaces(ctx context.Context, s *streams, places []model.Place, workers int, look bool) error {
	opener := backend.Opener{Clock: op.NewClock(), Getenv: os.Getenv}
	var all error
	for i := range places {
		p := &places[i]
		st, err := opener.Store(&p.Store)
		if err != nil {
			return err
		}
		containers, objects, left := map[cleanup.State]int{}, 0, 0
		sweeper := cleanup.Sweeper{Store: st, Workers: workers, Look: look}
		err = sweeper.Run(ctx, p.Containers, func(f cleanup.Found) {
			containers[f.State]++
			objects += f.Objects
			switch f.State {
			case cleanup.Left:
				left++
				visible.Fprintf(s.err, "%s is left: %s\n", f.Container, f.Why)
			case cleanup.NotOurs:
				visible.Fprintf(s.err, "%s does not carry CNSBench's mark: it is not touched; if it is not needed, "+
					"delete it with a client of the store\n", f.Container)
				if !look {
					left++
				}
			case cleanup.Seen:
				more := ""
				if f.More {
					more = " or more"
				}
				visible.Fprintf(s.out, "%s is there, with %s%s\n", f.Container, count(f.Objects, "object"), more)
			}
		})
		switch where := st.Describe(); {
		case look:
			visible.Fprintf(s.out, "%s: %s there, %d not; nothing was removed\n", where,
				count(containers[cleanup.Seen], "container"), containers[cleanup.Absent])
		default:
			visible.Fprintf(s.out, "%s: %s removed, with %s; %d not there\n", where,
				count(containers[cleanup.Removed], "container"), count(objects, "object"), containers[cleanup.Absent])
		}
		if left > 0 {
			err = errors.Join(err, fmt.Errorf("%s: %s left", st.Describe(), count(left, "container")))
		}
		all = errors.Join(all, err)
	}
	if all != nil {
		return failed(all)
	}
	return nil
}

// madeContainers reports whether the run of a bundle may have left containers.
func madeContainers(dir string) bool {
	b, err := bundle.Open(dir)
	if err != nil {
		return false
	}
	places, err := placesIn(&b.Run)
	return err == nil && len(places) > 0 && !removedAll(dir, &b.Run) && !madeNone(b)
}

// cleanupCommand is what removes the containers of a run, for a shell.
func cleanupCommand(dir string) string { return "cnsbench object cleanup " + shellWord(dir) }

// shellWord is a word for a POSIX shell.
func shellWord(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,@%+") == "" &&
		word != "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// disposes reports whether a workload removes all containers that it makes, if no stage of it fails.
func disposes(w *model.Workload) bool {
	var gone []*model.Work // that later works remove
	for _, s := range slices.Backward(w.Stages) {
		for i := range s.Works {
			if s.Works[i].Kind == model.Init && !covered(&s.Works[i], gone) {
				return false
			}
		}
		for i := range s.Works {
			// one that accepts failures proves nothing
			if work := &s.Works[i]; work.Kind == model.Dispose && work.MaxFailures == 0 {
				gone = append(gone, work)
			}
		}
	}
	return true
}

// covered reports whether each container of a work is one of others in the same store.
func covered(w *model.Work, by []*model.Work) bool {
	for i := range w.Ops {
		o := &w.Ops[i]
		if !slices.ContainsFunc(by, func(d *model.Work) bool {
			return w.Store.Same(&d.Store) && slices.ContainsFunc(d.Ops, func(x model.Op) bool {
				return x.ContainerName == o.ContainerName && x.Containers.Low <= o.Containers.Low &&
					o.Containers.High <= x.Containers.High
			})
		}) {
			return false
		}
	}
	return true
}

// cleansUp reports whether a work removes objects or containers.
func cleansUp(k *model.Work) bool { return k.Kind == model.Cleanup || k.Kind == model.Dispose }

// mayLeave reports whether a run may have left containers unintentionally: some were made, and a stage that cleans up
// failed or did not end, or the run was interrupted and its workload does not remove them all.
func mayLeave(w *model.Workload, r *oload.Result) bool {
	made := false
	for i := range min(len(w.Stages), len(r.Stages)) {
		s, became := &w.Stages[i], &r.Stages[i]
		if made && slices.ContainsFunc(s.Works, func(k model.Work) bool { return cleansUp(&k) }) {
			failed := became.Err != nil && len(became.Works) == 0
			for j := range became.Works {
				failed = failed || became.Works[j].Err != nil && cleansUp(became.Works[j].Work)
			}
			if became.Skipped || failed || r.Aborted {
				return true
			}
		}
		made = made || became.MadeContainers(backend.Traits)
	}
	return made && r.Interrupted && !disposes(w)
}

// sayLeft prints that a run may have left containers, with the command that removes them.
func (r *objectRun) sayLeft(result *oload.Result) {
	if !mayLeave(r.workload, result) {
		return
	}
	secrets := ""
	if len(cosbench.Secrets(r.workload, nil)) > 0 {
		secrets = ", with the credentials of the file in the environment"
	}
	w := r.out
	if forPrograms(r.flags.output) {
		w = r.err
	}
	visible.Fprintf(w, "containers may be left: %s%s\n", cleanupCommand(r.writer.Dir()), secrets)
}
