package run

import (
	"math/rand/v2"
	"sync"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// inventory is what exists because of the run, in order of creation, so that
// actions find their targets. Safe for concurrent use.
type inventory struct {
	mu      sync.Mutex
	objects []engine.Object
	turn    map[string]int // next of a round robin, by action
	rng     *rand.Rand
}

func newInventory(seed uint64) *inventory {
	return &inventory{turn: map[string]int{}, rng: rand.New(rand.NewPCG(seed, 0x696e76656e746f))}
}

func (v *inventory) add(objects ...engine.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.objects = append(v.objects, objects...)
}

// remove takes an object away; for a workload also the volumes it owns.
func (v *inventory) remove(o engine.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.objects = without(v.objects, o)
}

// grew takes over the new size of resized volumes.
func (v *inventory) grew(resized []engine.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, n := range resized {
		for i, o := range v.objects {
			if o.Kind == n.Kind && o.Name == n.Name {
				v.objects[i].Bytes = n.Bytes
			}
		}
	}
}

// find selects the targets of one trigger of action. With take they are
// removed in the same step, so that no other op chooses them.
func (v *inventory) find(action string, t *plan.Target, take bool) []engine.Object {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []engine.Object
	for _, o := range v.objects {
		if matches(t, o) {
			all = append(all, o)
		}
	}
	if len(all) == 0 {
		return nil
	}
	chosen := v.choose(action, t.Select, all)
	if take {
		for _, o := range chosen {
			v.objects = without(v.objects, o)
		}
	}
	return chosen
}

func (v *inventory) choose(action string, s plan.Select, all []engine.Object) []engine.Object {
	switch s {
	case plan.SelectOldest:
		return all[:1]
	case plan.SelectNewest:
		return all[len(all)-1:]
	case plan.SelectRandom:
		return []engine.Object{all[v.rng.IntN(len(all))]}
	case plan.SelectRoundRobin:
		i := v.turn[action] % len(all)
		v.turn[action] = i + 1
		return all[i : i+1]
	default:
		return all
	}
}

func matches(t *plan.Target, o engine.Object) bool {
	if o.Kind != t.Kind {
		return false
	}
	if t.Action != "" && o.Action != t.Action {
		return false
	}
	if t.Volume != "" && o.Name != t.Volume && o.Action != t.Volume && o.Source != t.Volume {
		return false
	}
	for k, want := range t.Labels {
		if o.Labels[k] != want {
			return false
		}
	}
	return true
}

func without(objects []engine.Object, o engine.Object) []engine.Object {
	kept := make([]engine.Object, 0, len(objects))
	for _, x := range objects {
		same := x.Kind == o.Kind && x.Name == o.Name
		owned := o.Kind == engine.WorkloadObject && x.Owner == o.Name
		if !same && !owned {
			kept = append(kept, x)
		}
	}
	return kept
}
