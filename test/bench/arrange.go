package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
)

// arm is one of the alternatives that are compared. do measures it once.
type arm[T any] struct {
	name string
	do   func(context.Context) (T, error)
}

// interleave measures each arm once in each block, and returns the values of each arm. A block before them warms up:
// its values are discarded. There are as many blocks as -blocks says, or usual; an interval of a ratio needs five.
func interleave[T any](ctx context.Context, e *env, usual int, arms ...arm[T]) ([][]T, error) {
	values := make([][]T, len(arms))
	orders := mirrored(len(arms), cmp.Or(e.blocks, pick(e, usual, 5)), e.seed)
	for block, order := range append(orders[:1:1], orders...) {
		for _, i := range order {
			v, err := arms[i].do(ctx)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", arms[i].name, err)
			}
			fmt.Fprintf(os.Stderr, "  block %d of %d, %s: %+v\n", block, len(orders), arms[i].name, v)
			if block > 0 {
				values[i] = append(values[i], v)
			}
		}
	}
	return values, nil
}

// mirrored returns the order of the arms in each block. Each second block is the reverse of the
// block before (A B C, C B A), so that a linear drift affects all arms equally. The order of each
// pair of blocks is random.
func mirrored(arms, blocks int, seed uint64) [][]int {
	r := rand.New(rand.NewPCG(seed, 0x6f72646572))
	var orders [][]int
	for len(orders) < blocks {
		order := r.Perm(arms)
		back := slices.Clone(order)
		slices.Reverse(back)
		orders = append(orders, order, back)
	}
	return orders[:blocks]
}

// pick returns a for a full measurement and b for a quick one.
func pick[T any](e *env, a, b T) T {
	if e.quick {
		return b
	}
	return a
}
