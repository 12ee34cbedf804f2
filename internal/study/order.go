package study

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/factor"
)

// The kinds of orders: random, that in which a search chose its steps, and that of a list.
const (
	orderRandom = "random"
	orderSearch = "search"
	orderListed = "listed"
)

// AsListed is the order of a design whose trials are run as they are listed, because some depend on earlier ones.
func AsListed() *Order { return &Order{Kind: orderListed} }

// Order is the order of the trials in a block.
type Order struct {
	// Kind is "random": each block is shuffled by a generator with Seed, the number of the occasion and that of the
	// block. "search" and "listed" have no seed.
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
	switch o.Kind {
	case orderSearch:
		return "as the search chose them"
	case orderListed:
		return "as listed"
	}
	return fmt.Sprintf("%s within each block, seed %d", o.Kind, o.Seed)
}

// trialsOf lists the trials of an occasion, which before blocks precede. Each block has every cell once, in random
// order, so that a drift during the study affects all cells alike.
func (d *Design) trialsOf(o Occasion, before int) []Trial {
	blocks := d.Blocks
	if o.Blocks > 0 {
		blocks = o.Blocks
	}
	var list []Trial
	for b := 1; b <= blocks; b++ {
		draws, drawn := d.draw(o.Number, b)
		drawn = append(drawn, d.trialSeed(before+b)...)
		for _, c := range d.shuffle(uint64(o.Number-1)<<32 | uint64(b)) {
			list = append(list, Trial{Cell: c, Repetition: before + b, Occasion: o.Number, Block: b, Draws: draws,
				Set: slices.Concat(d.Cells[c].Set, drawn)})
		}
	}
	number(list, d.Cells)
	return list
}

// shuffle returns the indexes of the cells in random order.
func (d *Design) shuffle(stream uint64) []int {
	return rand.New(rand.NewPCG(uint64(d.Order.Seed), stream)).Perm(len(d.Cells))
}

// draw returns the values of a block's distributions: their levels, and the settings.
func (d *Design) draw(occasion, block int) (levels []Level, list []string) {
	for _, f := range d.Distributions {
		h := fnv.New64a()
		fmt.Fprintf(h, "draw %s/%d/%d", f.Key, occasion, block)
		u := rand.New(rand.NewPCG(uint64(d.Order.Seed), h.Sum64())).Float64()
		value := factor.Draw(f.Distribution, u)
		levels = append(levels, Level{f.Factor, value})
		list = append(list, set(f.Key, value))
	}
	return levels, list
}

// trialSeed is the seed of the trials of a repetition, the same for all cells; of a study without a seed there is none.
func (d *Design) trialSeed(repetition int) []string {
	if d.Order.Drawn {
		return nil
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%d", d.Order.Seed, repetition)
	return []string{fmt.Sprintf("spec.seed=%d", h.Sum64()>>1)} // fits an int64
}

// number names the trials of an occasion by their position in its order.
func number(trials []Trial, cells []Cell) {
	for i := range trials {
		t := &trials[i]
		t.Name = fmt.Sprintf("%0*d_%.80s_r%d", len(fmt.Sprint(len(trials))), i+1, plainName(cells[t.Cell]), t.Repetition)
		if t.Occasion > 1 {
			t.Name = fmt.Sprintf("o%d_%s", t.Occasion, t.Name)
		}
	}
}

// plainName is the name of a cell as part of a file's name.
func plainName(c Cell) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("=.-", r):
			return r
		}
		return '_'
	}, c.Name())
}

// retrace lists the trials of all occasions of another design of the same study, in its order; false if that has other
// cells or blocks.
func (d *Design) retrace(there *Design) bool {
	if d.Search != nil && there.Search != nil { // its steps follow from one another
		d.Cells, d.Trials, d.Occasions = there.Cells, there.Trials, there.Occasions
		return true
	}
	if d.Search != nil || there.Search != nil {
		return false
	}
	if d.Order != nil && d.Order.Kind == orderListed {
		d.Occasions = there.Occasions
		return true
	}
	d.Order, d.Occasions = there.Order, there.Occasions
	planned := slices.Clone(d.Trials)
	if d.Order != nil {
		planned = nil
		for i := range d.OccasionCount() {
			planned = append(planned, d.trialsOf(d.occasion(i), lastRepetition(planned))...)
		}
	}
	type key struct{ cell, repetition int }
	own := map[key]Trial{}
	for _, t := range planned {
		own[key{t.Cell, t.Repetition}] = t
	}
	d.Trials = nil
	for _, o := range there.Trials {
		k := key{o.Cell, o.Repetition}
		t, ok := own[k]
		if !ok {
			return false
		}
		delete(own, k)
		d.Trials = append(d.Trials, t)
	}
	for _, trials := range d.byOccasion() {
		number(trials, d.Cells)
	}
	return len(own) == 0
}

// byOccasion divides the trials, which are in order of their occasions. The parts share the design's memory.
func (d *Design) byOccasion() (parts [][]Trial) {
	for from := 0; from < len(d.Trials); {
		to := from
		for to < len(d.Trials) && d.Trials[to].Occasion == d.Trials[from].Occasion {
			to++
		}
		parts = append(parts, d.Trials[from:to])
		from = to
	}
	return parts
}

func lastRepetition(trials []Trial) (last int) {
	for _, t := range trials {
		last = max(last, t.Repetition)
	}
	return last
}
