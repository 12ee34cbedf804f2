package model

import (
	"iter"
	"maps"
	"slices"
	"strconv"
)

// Place is a store and the containers that a workload creates there.
type Place struct {
	Store      Store      `json:"store"`
	Containers []Numbered `json:"containers"`
}

// Numbered is a family of names with the numbers from Low to High.
type Numbered struct {
	Name Name  `json:"name"`
	Low  int64 `json:"low"`
	High int64 `json:"high"`
}

// All returns the names, in order.
func (n Numbered) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := n.Low; i <= n.High && yield(n.Name.Prefix+strconv.FormatInt(i, 10)+n.Name.Suffix); i++ {
		}
	}
}

// Places returns the containers that works of type init create, by store. Stores that keep no objects are
// left out.
func Places(w *Workload, kinds Kinds) (places []Place) {
	for i := range w.Stages {
		for j := range w.Stages[i].Works {
			work := &w.Stages[i].Works[j]
			if work.Kind != Init || kinds(work.Store.Kind).Transient {
				continue
			}
			for k := range work.Ops {
				o := &work.Ops[k]
				p := placeOf(&places, &work.Store)
				if n := (Numbered{o.ContainerName, o.Containers.Low,
					o.Containers.High}); !slices.Contains(p.Containers, n) {
					p.Containers = append(p.Containers, n)
				}
			}
		}
	}
	return places
}

func placeOf(places *[]Place, s *Store) *Place {
	i := slices.IndexFunc(*places, func(p Place) bool {
		return p.Store.Same(s) && maps.Equal(p.Store.Secrets, s.Secrets)
	})
	if i < 0 {
		i, *places = len(*places), append(*places, Place{Store: *s})
	}
	return &(*places)[i]
}
