package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
)

func newObjectCleanup(s *streams) *cobra.Command {
	var look bool
	workers := 16
	c := &cobra.Command{
		Use: "cleanup FILE|BUNDLE", Short: "Remove the containers that a workload made, with their objects",
		Long: `Removes the containers that the works of type init of a workload make, or that
the run of a bundle has made, with all their objects. Containers without
CNSBench's mark are not touched, and count as left. Use it after a run that was
killed, or whose clean-up failed.

Credentials come from the same places as for object run. A bundle does not contain
those of the workload's file: set them in the environment.

Exit status: 0 nothing is left, 1 wrong file or flags, 2 something is left.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if workers < 1 {
				return errors.New("--workers must be at least 1")
			}
			places, err := placesOf(s, args[0])
			if err != nil {
				return err
			}
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			return sweepPlaces(ctx, s, places, workers, look)
		},
	}
	c.Flags().BoolVar(&look, "dry-run", false, "only list what exists")
	c.Flags().IntVar(&workers, "workers", workers, "how many objects are deleted at the same time")
	return c
}

// placesOf are the containers that a workload's file makes, or those that a killed run may have made.
func placesOf(s *streams, name string) ([]model.Place, error) {
	var places []model.Place
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		if places, err = placesOfRun(name); err != nil {
			return nil, err
		}
	} else {
		w, _, err := loadObject(s, name, nil)
		if err == nil {
			err = checkStores(s, name, w, true)
		}
		if err != nil {
			return nil, err
		}
		warnUnsigned(s, name, w)
		places = model.Places(w, backend.Traits)
	}
	if len(places) == 0 {
		return nil, fmt.Errorf("%s makes no containers in a store that keeps them: it has no work of type init", name)
	}
	return places, nil
}

func placesOfRun(dir string) ([]model.Place, error) {
	if err := bundle.CheckBundle(dir); err != nil {
		return nil, err
	}
	ledger, err := bundle.OpenLedger(dir) // only of a run that has ended
	if err == nil {
		err = ledger.Close()
	}
	if err != nil {
		return nil, err
	}
	b, err := bundle.Open(dir)
	if err != nil {
		return nil, err
	}
	return placesIn(&b.Run)
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
				fmt.Fprintf(s.err, "%s is left: %s\n", f.Container, f.Why)
			case cleanup.NotOurs:
				fmt.Fprintf(s.err, "%s does not carry CNSBench's mark: it is not touched; if it is not needed, "+
					"delete it with a client of the store\n", f.Container)
				if !look {
					left++
				}
			case cleanup.Seen:
				more := ""
				if f.More {
					more = " or more"
				}
				fmt.Fprintf(s.out, "%s is there, with %s%s\n", f.Container, count(f.Objects, "object"), more)
			}
		})
		switch where := st.Describe(); {
		case look:
			fmt.Fprintf(s.out, "%s: %s there, %d not; nothing was removed\n", where,
				count(containers[cleanup.Seen], "container"), containers[cleanup.Absent])
		default:
			fmt.Fprintf(s.out, "%s: %s removed, with %s; %d not there\n", where,
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

// madeContainers names the command that removes the containers of a bundle's run, unless the run is known to have
// removed them.
func madeContainers(dir string) string {
	b, err := bundle.Open(dir)
	if err != nil {
		return ""
	}
	places, err := placesIn(&b.Run)
	if err != nil || len(places) == 0 || removedAll(dir, &b.Run) || madeNone(b) {
		return ""
	}
	return "containers that it made may be left, which are not among them: " + cleanupCommand(dir)
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
	fmt.Fprintf(w, "containers may be left: %s%s\n", cleanupCommand(r.writer.Dir()), secrets)
}
