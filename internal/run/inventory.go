package run

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// inventory has the objects that exist because of the run, in order of creation, so that actions find their
// targets. Objects are grouped in a group per action and kind: most targets name both, so that a selection
// does not scan all objects. It is safe for concurrent use.
type inventory struct {
	mu     sync.Mutex
	groups map[group][]item
	seq    int64
	turn   map[string]int // next index of round-robin selection, by action
	rng    *rand.Rand
}

type group struct {
	kind   engine.ObjectKind
	action string
}

type item struct {
	seq int64 // order of creation over all groups
	engine.Object
}

func newInventory(seed uint64) *inventory {
	return &inventory{groups: map[group][]item{}, turn: map[string]int{},
		rng: rand.New(rand.NewPCG(seed, 0x696e76656e746f))}
}

func (v *inventory) add(objects ...engine.Object) []item {
	v.mu.Lock()
	defer v.mu.Unlock()
	added := make([]item, len(objects))
	for i, o := range objects {
		v.seq++
		key := group{o.Kind, o.Action}
		added[i] = item{v.seq, o}
		v.groups[key] = append(v.groups[key], added[i])
	}
	return added
}

// owned has the kind of the objects that are deleted together with an object of a kind.
var owned = map[engine.ObjectKind]engine.ObjectKind{
	engine.WorkloadObject:      engine.VolumeObject,
	engine.GroupSnapshotObject: engine.SnapshotObject,
}

// removeOwned removes the objects that a deleted object owned.
func (v *inventory) removeOwned(owner engine.Object) {
	kind, owns := owned[owner.Kind]
	if !owns {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	key := group{kind, owner.Action}
	v.groups[key] = slices.DeleteFunc(v.groups[key], func(i item) bool { return i.Owner == owner.Name })
}

// setSizes records the new sizes of resized volumes.
func (v *inventory) setSizes(resized []engine.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, n := range resized {
		for i, o := range v.groups[group{n.Kind, n.Action}] {
			if o.Name == n.Name {
				v.groups[group{n.Kind, n.Action}][i].Bytes = n.Bytes
			}
		}
	}
}

// find selects the targets of one trigger of action. With take it also removes them, so that no other op
// selects them.
func (v *inventory) find(action string, t *plan.Target, take bool) []engine.Object {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.take(v.candidates(t), action, t, take)
}

// findAmong is find restricted to those of the given items that still exist.
func (v *inventory) findAmong(items []item, action string, t *plan.Target, take bool) []engine.Object {
	v.mu.Lock()
	defer v.mu.Unlock()
	var candidates []item
	for _, it := range items {
		if it.Kind != t.Kind || t.Action != "" && it.Action != t.Action {
			continue
		}
		if now, there := v.at(it); there && matches(t, &now.Object) {
			candidates = append(candidates, now)
		}
	}
	return v.take(candidates, action, t, take)
}

// take selects from the candidates for one trigger. The caller holds mu.
func (v *inventory) take(candidates []item, action string, t *plan.Target, take bool) []engine.Object {
	if len(candidates) == 0 {
		return nil
	}
	from, to := v.choose(action, t.Select, len(candidates))
	chosen := slices.Clone(candidates[from:to])
	objects := make([]engine.Object, len(chosen))
	for i, c := range chosen {
		objects[i] = c.Object
		if take {
			v.remove(c)
		}
	}
	return objects
}

// candidates returns the objects that match a target, in order of creation. If the target names only action
// and kind, the result is the group itself and must not be modified. The caller holds mu.
func (v *inventory) candidates(t *plan.Target) []item {
	if t.Action != "" && t.Volume == "" && len(t.Labels) == 0 {
		return v.groups[group{t.Kind, t.Action}]
	}
	var list []item
	for key, items := range v.groups {
		if key.kind != t.Kind || t.Action != "" && key.action != t.Action {
			continue
		}
		for _, i := range items {
			if matches(t, &i.Object) {
				list = append(list, i)
			}
		}
	}
	slices.SortFunc(list, func(a, b item) int { return int(a.seq - b.seq) })
	return list
}

// choose returns the range [from, to) of n candidates that one trigger selects.
func (v *inventory) choose(action string, s plan.Select, n int) (from, to int) {
	switch s {
	case plan.SelectOldest:
		return 0, 1
	case plan.SelectNewest:
		return n - 1, n
	case plan.SelectRandom:
		i := v.rng.IntN(n)
		return i, i + 1
	case plan.SelectRoundRobin:
		i := v.turn[action] % n
		v.turn[action] = i + 1
		return i, i + 1
	default:
		return 0, n
	}
}

// position returns the index of an item in its group, and whether it exists.
func (v *inventory) position(it item) (int, bool) {
	return slices.BinarySearchFunc(v.groups[group{it.Kind, it.Action}], it.seq,
		func(a item, seq int64) int { return int(a.seq - seq) })
}

// at returns the current state of an item, and whether it exists.
func (v *inventory) at(it item) (item, bool) {
	i, found := v.position(it)
	if !found {
		return item{}, false
	}
	return v.groups[group{it.Kind, it.Action}][i], true
}

// draw returns a random number from the run's seed.
func (v *inventory) draw() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.rng.Uint64()
}

// remove removes an item from its group. The oldest item, the most frequent case, is removed without moving
// the others.
func (v *inventory) remove(it item) {
	key := group{it.Kind, it.Action}
	items := v.groups[key]
	i, found := v.position(it)
	switch {
	case !found:
	case i == 0:
		items[0] = item{} // frees its strings
		v.groups[key] = items[1:]
	default:
		v.groups[key] = slices.Delete(items, i, i+1)
	}
}

func matches(t *plan.Target, o *engine.Object) bool {
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
