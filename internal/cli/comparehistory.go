package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cnsbench/cnsbench/internal/analysis/cost"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/imported"
	"github.com/cnsbench/cnsbench/internal/observation"
)

// historyEntry is a bundle or a study of a history, with the name that it has there.
type historyEntry struct{ label, dir string }

// readHistory joins the bundles and studies of a directory, in order of their names, or takes the occasions of a study.
func readHistory(s *streams, dir string, prices *cost.Prices) (*compared, error) {
	if isStudy(dir) {
		return readOccasions(dir, prices)
	}
	list, err := historyEntries(dir)
	if err != nil {
		return nil, err
	}
	return joinHistory(list, func(dir string) (*compared, string, error) {
		one, err := readAny(s, dir, prices, true)
		if errors.Is(err, errIncomplete) {
			return nil, err.Error(), nil
		}
		return one, "", err
	})
}

func isStudy(dir string) bool { return imported.Is(dir) || hasFile(dir, studyFile) }

// readOccasions reads a study with its occasions, or its blocks, as the runs of a history.
func readOccasions(dir string, prices *cost.Prices) (*compared, error) {
	one, err := readStudy(dir, prices)
	if err != nil {
		return nil, err
	}
	t, ok := one.table.OverTime(historyFactor)
	if !ok {
		return nil, fmt.Errorf("%s has neither occasions nor blocks: there is no history", dir)
	}
	one.table, one.factor = t, historyFactor
	return one, nil
}

// historyEntries lists the bundles and studies in a directory in order of their names.
func historyEntries(dir string) (list []historyEntry, err error) {
	entries, err := bounded.Dir(dir).ReadDir(".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() && (isBundle(path) || isStudy(path)) {
			list = append(list, historyEntry{e.Name(), path})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no bundles and no studies", dir)
	}
	return list, nil
}

// joinHistory joins runs in their order. A run for which read returns a reason is left out.
func joinHistory(list []historyEntry, read func(dir string) (*compared, string, error)) (*compared, error) {
	all := &compared{factor: historyFactor}
	var labels []string
	var tables []*observation.Table
	for _, e := range list {
		one, reason, err := read(e.dir)
		switch {
		case err != nil:
			return nil, err
		case reason != "":
			all.notes = append(all.notes, reason+"; it is left out")
			continue
		}
		o := one.origins[0]
		o.label = e.label
		labels, tables, all.origins = append(labels, e.label), append(tables, one.table), append(all.origins, o)
		all.costs = all.costs.with(one.costs, false)
		all.objectives = merged(all.objectives, one.objectives)
	}
	if len(tables) == 0 {
		return nil, fmt.Errorf("no run of the history is complete: %s", listed(all.notes))
	}
	t, err := observation.Join(historyFactor, labels, tables)
	all.table = t
	return all, err
}
