package stats

import (
	"cmp"
	"math/bits"
	"slices"
	"sync"
)

// digit is how many bits of a key are sorted at once.
const digit = 11

// scratch has memory of sorts by digits, *[]uint64: new memory of their size costs about as much time as a sort.
var scratch sync.Pool

// borrow returns at least n numbers of any value.
func borrow(n int) *[]uint64 {
	if m, ok := scratch.Get().(*[]uint64); ok && len(*m) >= n {
		return m
	}
	m := make([]uint64, n)
	return &m
}

// Order returns the numbers from 0 to n-1 in ascending order of their keys, equal ones in their own order. It sorts by
// digits, which is several times as fast as by comparisons.
func Order(n int, key func(i int) int64) []int32 {
	order := make([]int32, n)
	low, high := int64(0), int64(0)
	for i := range n {
		order[i] = int32(i)
		if k := key(i); i == 0 {
			low, high = k, k
		} else {
			low, high = min(low, k), max(high, k)
		}
	}
	number := bits.Len(uint(n)) // bits of an i beside its key
	all := number + bits.Len64(uint64(high)-uint64(low))
	if n < 1<<digit || all > 64 {
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(key(int(a)), key(int(b))) })
		return order
	}
	memory := borrow(2 * n)
	defer scratch.Put(memory)
	from, to := (*memory)[:n], (*memory)[n:2*n]
	for i := range n {
		from[i] = (uint64(key(i))-uint64(low))<<number | uint64(i)
	}
	for i, x := range byDigits(from, to, number, all) {
		order[i] = int32(x & (1<<number - 1))
	}
	return order
}

// byDigits sorts numbers by their bits [low, high), of which higher ones are 0, and returns one of from and to.
func byDigits(from, to []uint64, low, high int) []uint64 {
	for shift := low; shift < high; shift += digit {
		var next [1 << digit]int32
		for _, x := range from {
			next[x>>shift&(1<<digit-1)]++
		}
		at := int32(0)
		for d, n := range next {
			next[d], at = at, at+n
		}
		for _, x := range from {
			d := x >> shift & (1<<digit - 1)
			to[next[d]] = x
			next[d]++
		}
		from, to = to, from
	}
	return from
}

// fewValues is the number of values below which a sort by comparisons is as fast as one by digits.
const fewValues = 512

// sortValues sorts values from low to high.
func sortValues(values []int64, low, high int64) {
	if len(values) < fewValues {
		slices.Sort(values)
		return
	}
	n := len(values)
	memory := borrow(2 * n)
	defer scratch.Put(memory)
	from, to := (*memory)[:n], (*memory)[n:2*n]
	for i, v := range values {
		from[i] = uint64(v) - uint64(low)
	}
	for i, x := range byDigits(from, to, 0, bits.Len64(uint64(high)-uint64(low))) {
		values[i] = int64(x + uint64(low))
	}
}
