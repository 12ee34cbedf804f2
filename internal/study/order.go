package study

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// orderRandom is the kind of an order that is drawn.
const orderRandom = "random"

// Order says how the trials of a block follow one another. A block is one
// repetition of every cell.
type Order struct {
	// Kind is "random": each block is shuffled, by a generator seeded with Seed
	// and the number of the repetition.
	Kind string `json:"kind"`
	Seed int64  `json:"seed"`
	// Drawn: the study has no seed, so that this one was drawn.
	Drawn bool `json:"drawn,omitempty"`
}

// String describes the order. A nil order is that of the cells, in which studies
// of earlier versions were begun.
func (o *Order) String() string {
	if o == nil {
		return "as the cells are listed, in each repetition: the study was begun by a version that did not shuffle"
	}
	return fmt.Sprintf("%s within each repetition, seed %d", o.Kind, o.Seed)
}

// shuffled lists the trials: each repetition has every cell once, as a block, in
// an order of its own. Whatever drifts in the course of a study then falls on all
// cells alike.
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

// number names the trials by their place in the order.
func number(trials []Trial, cells []Cell) {
	for i := range trials {
		t := &trials[i]
		t.Name = trialName(i, len(trials), cells[t.Cell], t.Repetition)
	}
}

// follow puts the trials into the order of others, which must be of the same
// cells and repetitions; false if they are not. The others say where in the order
// a trial is, and nothing else.
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
