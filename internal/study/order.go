package study

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// orderRandom is the kind of a random order.
const orderRandom = "random"

// Order is the order of the trials in a block. A block is one repetition of every cell.
type Order struct {
	// Kind is "random": each block is shuffled by a generator with Seed and the number of the repetition.
	Kind string `json:"kind"`
	Seed int64  `json:"seed"`
	// Drawn says that the study has no seed, and this one was drawn.
	Drawn bool `json:"drawn,omitempty"`
}

// String describes the order. Studies of earlier versions have a nil order, that of the cells.
func (o *Order) String() string {
	if o == nil {
		return "as the cells are listed, in each repetition: an earlier version, without random order, started the study"
	}
	return fmt.Sprintf("%s within each repetition, seed %d", o.Kind, o.Seed)
}

// shuffled lists the trials: each repetition is a block that has every cell once, in random order, so that a drift
// during the study affects all cells alike.
func shuffled(cells []Cell, repetitions int, seed int64) []Trial {
	var list []Trial
	for r := 1; r <= repetitions; r++ {
		for _, c := range rand.New(rand.NewPCG(uint64(seed), uint64(r))).Perm(len(cells)) {
			list = append(list, Trial{Cell: c, Repetition: r, Set: slices.Clone(cells[c].Set)})
		}
	}
	number(list, cells)
	return list
}

// number names the trials by their position in the order.
func number(trials []Trial, cells []Cell) {
	for i := range trials {
		t := &trials[i]
		t.Name = trialName(i, len(trials), cells[t.Cell], t.Repetition)
	}
}

// follow sorts the trials like others; false if those have other cells or repetitions.
func (d *Design) follow(others []Trial) bool {
	type key struct{ cell, repetition int }
	own := map[key]Trial{}
	for _, t := range d.Trials {
		own[key{t.Cell, t.Repetition}] = t
	}
	list := make([]Trial, 0, len(d.Trials))
	for _, o := range others {
		k := key{o.Cell, o.Repetition}
		t, ok := own[k]
		if !ok {
			return false
		}
		delete(own, k)
		list = append(list, t)
	}
	if len(own) > 0 {
		return false
	}
	number(list, d.Cells)
	d.Trials = list
	return true
}
