package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	stallBound = 50 * time.Millisecond // minimum length of the freezes that are checked
	lengthOff  = 20 * time.Millisecond // maximum difference between a stall's length and its freeze's
	heldFor    = 150 * time.Millisecond
)

// demo runs the quick start twice: unmodified, and with snapshots that hold the freeze, so that
// stalls with a known minimum length occur on any host.
func demo(ctx context.Context, e *env) (table, error) {
	var t table
	if os.Geteuid() != 0 {
		return t, fmt.Errorf("loopfile needs root")
	}
	text, err := os.ReadFile(filepath.Join(e.root, "examples", "quickstart.yaml"))
	if err != nil {
		return t, err
	}
	held, err := holding(string(text))
	if err != nil {
		return t, err
	}
	for _, c := range []struct {
		name, yaml string
		known      bool
	}{{"quickstart", string(text), false}, {fmt.Sprintf("freezes held %v", heldFor), held, true}} {
		trial, err := e.run(ctx, c.yaml, "--set", fmt.Sprintf("fio.runtime=%d", pick(e, 30, 12)))
		if err != nil {
			return t, err
		}
		if err := t.freezes(c.name, trial, c.known); err != nil {
			return t, err
		}
		trial.remove()
	}
	return t, nil
}

// holding adds an action to the quick start that makes its volumes hold each freeze from the
// barrier on.
func holding(text string) (string, error) {
	head, rest, ok := strings.Cut(text, "\n---\n")
	var b map[string]any
	if err := yaml.Unmarshal([]byte(head), &b); err != nil || !ok {
		return "", fmt.Errorf("quickstart.yaml is not as this bench knows it: %w", err)
	}
	spec := b["spec"].(map[string]any)
	spec["actions"] = append(spec["actions"].([]any), map[string]any{"name": "hold", "modifySpec": map[string]any{
		"actionName": "fio", "parameters": map[string]any{"freezeHold": heldFor.String()}}})
	out, err := yaml.Marshal(b)
	return string(out) + "\n---\n" + rest, err
}

// freezes compares the driver's log with the stalls of the summary. If known is set, there must be
// a freeze.
func (t *table) freezes(name string, trial *trial, known bool) error {
	records, err := trial.truth("loopfile")
	if err != nil {
		return err
	}
	list := freezesOf(trial, records)
	var listed, near int
	var worst, plain int64
	for _, f := range list {
		stall, ok := f.listedIn(trial.summary.Stalls)
		if !ok {
			t.note("%s: the freeze of %s at %.3f s (%s) is not listed.", name, ms(f.ns),
				time.Duration(f.from).Seconds(), f.op)
			continue
		}
		listed++
		off := f.off(stall)
		worst, plain = max(worst, off), max(plain, max(stall-f.ns, f.ns-stall))
		if off <= int64(lengthOff) {
			near++
		} else {
			t.note("%s: the freeze of %s at %.3f s (%s) is %s from its stall.", name, ms(f.ns),
				time.Duration(f.from).Seconds(), f.op, ms(off))
		}
	}
	if len(list) == 0 && !known {
		t.info(0, name+": freezes ≥ "+stallBound.String(), "none on this machine")
		return t.objectives(name, trial)
	}
	all := fmt.Sprintf("all, and some (freezes ≥ %v)", stallBound)
	t.add(name+": freezes listed with their op", fmt.Sprintf("%d of %d", listed, len(list)), all,
		metIf(listed == len(list) && listed > 0), len(list))
	t.add(name+": largest difference in length", ms(worst), "≤ "+ms(int64(lengthOff)),
		metIf(near == len(list) && near > 0), listed)
	t.info(listed, name+": the same, counted from the FIFREEZE call alone", "%s", ms(plain))
	return t.objectives(name, trial)
}

// objectives adds the verdicts and the duration of a run.
func (t *table) objectives(name string, trial *trial) error {
	for _, v := range trial.summary.Verdicts {
		var seen []string
		for _, o := range v.Observed {
			seen = append(seen, fmt.Sprintf("%s = %s", o.Expr, o.Value))
		}
		judged := v.Status == "pass" || v.Status == "fail"
		t.add(name+": objective "+v.Name, fmt.Sprintf("%s: %s", v.Status, strings.Join(seen, ", ")), "judged",
			metIf(judged), 1)
	}
	if len(trial.summary.Verdicts) == 0 {
		return fmt.Errorf("no objective was judged")
	}
	t.info(1, name+": wall time", "%.1f s", trial.wall.Seconds())
	return nil
}

// freeze is one freeze of the driver's log, on the run's clock.
type freeze struct {
	from, to op.Time
	ns, held int64  // writers are blocked for at least held, at most ns
	claim    string // its volume, by its name in the run
	op       string // such as "snapshots-3"
}

// freezesOf returns the freezes of at least stallBound. Their names come from the RPCs that created
// the volumes and the snapshots.
func freezesOf(trial *trial, records []csidriver.Record) []freeze {
	prefix := "cnsbench-" + trial.bundle.Run.ID + "-"
	names := map[string]string{}
	for _, r := range records {
		switch r.RPC {
		case "CreateVolume":
			names[r.Volume] = strings.TrimPrefix(r.Name, prefix)
		case "CreateSnapshot":
			names[r.Snapshot] = strings.TrimPrefix(r.Name, prefix)
		}
	}
	var list []freeze
	for _, r := range records {
		if r.Event == "freeze" && r.DurationNs >= int64(stallBound) {
			list = append(list, freeze{trial.runTime(r.StartUnixNs), trial.runTime(r.EndUnixNs), r.DurationNs, r.HeldNs,
				names[r.Volume], names[r.Snapshot]})
		}
	}
	return list
}

// off returns how far a stall's length is outside the bounds from the driver's log. Writers can be
// blocked from any moment of the FIFREEZE call on.
func (f freeze) off(stall int64) int64 { return max(0, stall-f.ns, f.held-stall) }

// listedIn returns the length of the stall of the same volume and time that names the freeze's op.
// Among several it returns the one closest to the freeze's length.
func (f freeze) listedIn(stalls []interference.Stall) (length int64, ok bool) {
	for _, s := range stalls {
		sameVolume := s.Volume == f.claim || s.Volume == "" && strings.HasPrefix(f.claim, s.Instance+"-")
		from := s.From
		if s.Source == "workload" { // From is the start of the time slice
			from -= op.Time(s.LengthNs)
		}
		if !sameVolume || from > f.to || s.To.Known() && s.To < f.from {
			continue
		}
		for _, c := range s.Ops {
			if fmt.Sprintf("%s-%d", c.Action, c.Instance) != f.op {
				continue
			}
			if !ok || f.off(s.LengthNs) < f.off(length) {
				length, ok = s.LengthNs, true
			}
		}
	}
	return length, ok
}
