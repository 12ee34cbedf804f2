package run

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// inventory is what exists because of the run, in order of creation, so that
// actions find their targets. Objects lie on a shelf for each action and kind,
// since most targets name both: to choose one of many takes no walk over all.
// Safe for concurrent use.
type inventory struct {
	mu      sync.Mutex
	shelves map[shelf][]item
	seq     int64
	turn    map[string]int // next of a round robin, by action
	rng     *rand.Rand
}

type shelf struct {
	kind   engine.ObjectKind
	action string
}

type item struct {
	seq int64 // order of creation over all shelves
	engine.Object
}

func newInventory(seed uint64) *inventory {
	return &inventory{shelves: map[shelf][]item{}, turn: map[string]int{},
		rng: rand.New(rand.NewPCG(seed, 0x696e76656e746f))}
}

func (v *inventory) add(objects ...engine.Object) []item {
	v.mu.Lock()
	defer v.mu.Unlock()
	added := make([]item, len(objects))
	for i, o := range objects {
		v.seq++
		key := shelf{o.Kind, o.Action}
		added[i] = item{v.seq, o}
		v.shelves[key] = append(v.shelves[key], added[i])
	}
	return added
}

// owned is what goes with an object of a kind when that is deleted.
var owned = map[engine.ObjectKind]engine.ObjectKind{
	engine.WorkloadObject:      engine.VolumeObject,
	engine.GroupSnapshotObject: engine.SnapshotObject,
}

// removeOwned takes away what an object that is gone owned.
func (v *inventory) removeOwned(owner engine.Object) {
	kind, owns := owned[owner.Kind]
	if !owns {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	key := shelf{kind, owner.Action}
	v.shelves[key] = slices.DeleteFunc(v.shelves[key], func(i item) bool { return i.Owner == owner.Name })
}

// setSizes takes over the new size of resized volumes.
func (v *inventory) setSizes(resized []engine.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, n := range resized {
		for i, o := range v.shelves[shelf{n.Kind, n.Action}] {
			if o.Name == n.Name {
				v.shelves[shelf{n.Kind, n.Action}][i].Bytes = n.Bytes
			}
		}
	}
}

// find selects the targets of one trigger of action. With take they are
// removed in the same step, so that no other op chooses them.
func (v *inventory) find(action string, t *plan.Target, take bool) []engine.Object {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.take(v.candidates(t), action, t, take)
}

// findAmong is find among the given items, as far as they are still there.
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

// take gives those of the candidates that one trigger takes.
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

// candidates lists what a target may mean, in order of creation. It is the
// shelf itself where the target asks for no more.
func (v *inventory) candidates(t *plan.Target) []item {
	if t.Action != "" && t.Volume == "" && len(t.Labels) == 0 {
		return v.shelves[shelf{t.Kind, t.Action}]
	}
	var list []item
	for key, items := range v.shelves {
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

// choose gives the range of the candidates that one trigger takes.
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

// position is where an item lies on its shelf, if it is there.
func (v *inventory) position(it item) (int, bool) {
	return slices.BinarySearchFunc(v.shelves[shelf{it.Kind, it.Action}], it.seq,
		func(a item, seq int64) int { return int(a.seq - seq) })
}

// at is an item as it is now, if it is there.
func (v *inventory) at(it item) (item, bool) {
	i, found := v.position(it)
	if !found {
		return item{}, false
	}
	return v.shelves[shelf{it.Kind, it.Action}][i], true
}

// draw gives a number from the run's seed.
func (v *inventory) draw() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.rng.Uint64()
}

// remove takes an item from its shelf; the oldest, which is asked for most,
// without moving the others.
func (v *inventory) remove(it item) {
	key := shelf{it.Kind, it.Action}
	items := v.shelves[key]
	i, found := v.position(it)
	switch {
	case !found:
	case i == 0:
		items[0] = item{} // lets go of its strings
		v.shelves[key] = items[1:]
	default:
		v.shelves[key] = slices.Delete(items, i, i+1)
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
