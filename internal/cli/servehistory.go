package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/reproduction"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/web"
)

// histories answers histories for the web interface, as compare --history does, and keeps what it read of complete runs
// until they change. The zero value is empty. It is safe for concurrent use.
type histories struct {
	mu   sync.Mutex
	runs map[string]historyRun // by directory
}

// historyRun is what a history needs of a run, as of a version of its run.json.
type historyRun struct {
	changed  time.Time
	values   *compared
	settings reproduction.Settings
}

const (
	// maxHistoryRuns bounds the runs that are kept.
	maxHistoryRuns = 2000
	// maxSettings and maxSetting bound the settings of a run that are shown as changed, and the bytes of one.
	maxSettings = 20
	maxSetting  = 200
)

// answer answers for runs in their order, or for what is in a directory.
func (h *histories) answer(ctx context.Context, dir string, runs []web.Labelled) (*web.Answer, error) {
	var in *compared
	var list []historyEntry
	var err error
	for _, r := range runs {
		list = append(list, historyEntry{r.Label, r.Dir})
	}
	if dir != "" && isStudy(dir) {
		in, err = readOccasions(dir, nil)
	} else {
		if dir != "" {
			list, err = historyEntries(dir)
		}
		if err == nil {
			in, err = joinHistory(list, func(run string) (*compared, string, error) { return h.read(ctx, run, dir == "") })
		}
	}
	if err != nil {
		return nil, err
	}
	f := compareFlags{level: "occasion", history: true}
	o, err := f.judging(in)
	if err != nil {
		return nil, err
	}
	r, err := f.answer(in, o)
	if err != nil {
		return nil, err
	}
	return &web.Answer{Result: r, Objectives: in.objectives, Changed: h.settings(list, r.Levels)}, nil
}

// read reads a run, unless it is known. Of a run that is left out it returns the reason: one that did not complete, and
// with leaveOut also one that cannot be read.
func (h *histories) read(ctx context.Context, dir string, leaveOut bool) (*compared, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	st, err := os.Stat(filepath.Join(dir, runFile))
	if err == nil {
		h.mu.Lock()
		old, ok := h.runs[dir]
		h.mu.Unlock()
		if ok && old.changed.Equal(st.ModTime()) {
			return old.values, "", nil
		}
	}
	isRun := err == nil
	one, err := readAny(&streams{out: io.Discard, err: io.Discard}, dir, nil, true)
	var settings reproduction.Settings
	if err == nil && isRun {
		settings, err = settingsAt(dir)
	}
	switch {
	case errors.Is(err, errIncomplete), err != nil && leaveOut:
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", err
	case isRun:
		h.keep(dir, historyRun{st.ModTime(), one, settings})
	}
	return one, "", nil
}

func settingsAt(dir string) (reproduction.Settings, error) {
	b, err := bundle.Open(dir)
	if err != nil {
		return reproduction.Settings{}, err
	}
	return reproduction.SettingsOf(b)
}

func (h *histories) keep(dir string, r historyRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs == nil || len(h.runs) >= maxHistoryRuns {
		h.runs = map[string]historyRun{}
	}
	h.runs[dir] = r
}

// settings are those of each bundle, by its label, that differ from those of the bundle before it.
func (h *histories) settings(list []historyEntry, labels []string) map[string][]reproduction.Difference {
	h.mu.Lock()
	defer h.mu.Unlock()
	changed := map[string][]reproduction.Difference{}
	var before *reproduction.Settings
	for _, e := range list {
		run, ok := h.runs[e.dir]
		if !ok || !slices.Contains(labels, e.label) {
			continue
		}
		if before != nil {
			changed[e.label] = shortened(run.settings.Changed(*before))
		}
		before = &run.settings
	}
	return changed
}

// shortened bounds differences, which are of untrusted bundles.
func shortened(list []reproduction.Difference) []reproduction.Difference {
	list = list[:min(len(list), maxSettings)]
	for i := range list {
		list[i].Fact = bounded.Text(list[i].Fact, maxSetting)
		for _, value := range []**string{&list[i].Then, &list[i].Now} {
			if *value != nil {
				short := bounded.Text(**value, maxSetting)
				*value = &short
			}
		}
	}
	return list
}
