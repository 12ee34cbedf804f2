package cli

import (
	"encoding/json"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/object/coordinator"
	oload "github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/output"
)

// removedAll reports whether a bundle shows that its run removed all containers that it made: all stages ended
// without failure, and remove all that they make.
func removedAll(dir string, r *bundle.Run) bool {
	if r.State != bundle.Complete {
		return false
	}
	if r.ObjectsOnly() {
		var w model.Workload
		return json.Unmarshal(r.Plan, &w) == nil && disposes(&w)
	}
	var f facts
	if json.Unmarshal(r.Plan, &f) != nil {
		return false
	}
	for _, o := range f.Budget.Objects {
		if len(o.Makes) > 0 && !actionRemovedAll(os.DirFS(dir), o.Action) {
			return false
		}
	}
	return true
}

// madeNone reports whether a bundle shows that its works of type init made no container: each of their operations has
// a histogram with its outcome.
func madeNone(b *bundle.Bundle) bool {
	var w model.Workload
	if !b.Run.ObjectsOnly() || b.Run.State == bundle.Running || json.Unmarshal(b.Run.Plan, &w) != nil {
		return false
	}
	inits := map[string]bool{} // by action
	for i := range w.Stages {
		for j := range w.Stages[i].Works {
			if work := &w.Stages[i].Works[j]; work.Kind == model.Init {
				inits[output.Action(w.Stages[i].Name, work.Name)] = true
			}
		}
	}
	for h, err := range b.Histograms() {
		if err != nil {
			return false
		}
		_, label, failed := strings.Cut(h.Metric, "!")
		if inits[h.Action] && (!failed || oload.MayHaveDone(label)) {
			return false
		}
	}
	for _, f := range b.Run.Validity {
		if f.Name == "incomplete" || f.Name == "lost-operations" {
			return false
		}
	}
	return true
}

// actionRemovedAll is removedAll for the instances of an action, by the files of their shards.
func actionRemovedAll(bundle fs.FS, action string) bool {
	files, err := fs.Glob(bundle, "raw/*/*/output/*.objects.jsonl")
	if err != nil {
		return false
	}
	var all model.Workload
	seen, parts := map[int]int{}, 0
	for _, name := range files {
		if !instanceOf(strings.Split(name, "/")[1], action) {
			continue
		}
		p, err := readShard(bundle, name)
		if err != nil || p.Torn || p.Err != "" || p.Interrupted {
			return false
		}
		for i, s := range p.Workload.Stages {
			if s := &p.Stages[i]; !s.Over || s.Skipped || s.Err != nil {
				return false
			}
			if i == len(all.Stages) {
				all.Stages = append(all.Stages, model.Stage{})
			}
			all.Stages[i].Works = append(all.Stages[i].Works, s.Works...)
		}
		parts = p.Parts
		seen[p.Index]++
	}
	for i := range parts { // a shard without a file may have left containers
		if seen[i] != seen[0] {
			return false
		}
	}
	return parts > 0 && disposes(&all)
}

func instanceOf(instance, action string) bool {
	number, ok := strings.CutPrefix(instance, action+"-")
	_, err := strconv.Atoi(number)
	return ok && err == nil
}

func readShard(bundle fs.FS, name string) (*coordinator.Shard, error) {
	f, err := bundle.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	return coordinator.ReadShard(f)
}
