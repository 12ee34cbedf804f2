// Package integrity checks what a volume has of a known stream of writes: whether a snapshot, a clone or a volume after
// a disturbance is crash-consistent. It is pure: it does no I/O and has no clock.
//
// A Stream is an endless sequence of writes of whole blocks, numbered from 1: their generations. The place of each is a
// function of the stream's parameters, and a block that was written names the stream, its place and its generation. So
// the state that any prefix of the stream leaves is known without a log.
package integrity

import (
	"errors"
	"fmt"
	"hash/fnv"
)

// Stream has the parameters of a sequence of writes. Each block has them, so that an image can be checked alone.
type Stream struct {
	ID        uint64 `json:"id"`        // of the writer, see IDOf
	Seed      uint64 `json:"seed"`      // of the order
	Blocks    int64  `json:"blocks"`    // number of blocks
	BlockSize int    `json:"blockSize"` // bytes
	SyncEvery int64  `json:"syncEvery"` // writes between two syncs, after the first pass
}

// Bounds of a stream.
const (
	Unit         = 4096    // least block size
	MaxBlockSize = 1 << 20 // bytes
	MaxBlocks    = 1 << 22 // a check has 16 bytes of memory for each
	MaxSyncEvery = 4096    // writes
)

// IDOf returns the ID of the stream of a writer with that name.
func IDOf(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// Validate reports the first parameter that is out of bounds.
func (s Stream) Validate() error {
	switch {
	case s.BlockSize < Unit || s.BlockSize > MaxBlockSize || s.BlockSize&(s.BlockSize-1) != 0:
		return fmt.Errorf("invalid block size %d: want a power of 2 from %d to %d", s.BlockSize, Unit, MaxBlockSize)
	case s.Blocks < 1 || s.Blocks > MaxBlocks:
		return fmt.Errorf("invalid number of blocks %d: want 1 to %d", s.Blocks, MaxBlocks)
	case s.SyncEvery < 1 || s.SyncEvery > MaxSyncEvery:
		return fmt.Errorf("invalid number of writes between syncs %d: want 1 to %d", s.SyncEvery, MaxSyncEvery)
	case s.SyncEvery > s.Blocks:
		return errors.New("invalid number of writes between syncs: want at most the number of blocks")
	}
	return nil
}

// At returns the index of the block that write g (from 1) goes to. Each pass of Blocks writes goes to each block once:
// the first in order of the blocks, each later one in an order of its own.
func (s Stream) At(g int64) int64 {
	pass, i := (g-1)/s.Blocks, uint64((g-1)%s.Blocks)
	n := uint64(s.Blocks)
	factor, shift := s.order(pass)
	return int64((factor*i + shift) % n) // below 2^44
}

// Last returns the last write to a block among those up to g; 0: none.
func (s Stream) Last(block, g int64) int64 {
	if g <= 0 {
		return 0
	}
	pass := (g - 1) / s.Blocks
	if last := s.in(pass, block); last <= g {
		return last
	}
	if pass == 0 {
		return 0
	}
	return s.in(pass-1, block)
}

// in returns the write to a block in a pass.
func (s Stream) in(pass, block int64) int64 {
	n := uint64(s.Blocks)
	factor, shift := s.order(pass)
	i := inverse(factor, n) * ((uint64(block) + n - shift) % n) % n
	return pass*s.Blocks + int64(i) + 1
}

// order returns the order of a pass: write i goes to block factor·i + shift modulo the number of blocks, to which the
// factor has no common divisor, so that it can be inverted without a table.
func (s Stream) order(pass int64) (factor, shift uint64) {
	n := uint64(s.Blocks)
	if pass == 0 {
		return 1 % n, 0
	}
	random := mix(s.Seed ^ mix(uint64(pass)))
	shift = mix(random) % n
	for factor = random % n; gcd(factor, n) != 1; factor = (factor + 1) % n {
	}
	return factor, shift
}

// mix is the finalizer of splitmix64, which scatters consecutive numbers.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// inverse returns the inverse of a modulo n, to which it has no common divisor (the extended Euclidean algorithm).
func inverse(a, n uint64) uint64 {
	r0, r1 := int64(n), int64(a%n)
	t0, t1 := int64(0), int64(1)
	for r1 != 0 {
		q := r0 / r1
		r0, r1 = r1, r0-q*r1
		t0, t1 = t1, t0-q*t1
	}
	return uint64((t0%int64(n) + int64(n)) % int64(n))
}

// Floor returns the last write of the windows before the one of write g: the writer had an acknowledgement that these
// are durable before it began g. The first pass is one window; each later one consists of windows of SyncEvery writes,
// the last of which may be shorter. So no window writes a block twice, and one that is written again, after a crash,
// leaves what it left before.
func (s Stream) Floor(g int64) int64 {
	if g <= s.Blocks {
		return 0
	}
	pass, i := (g-1)/s.Blocks, (g-1)%s.Blocks
	return pass*s.Blocks + i/s.SyncEvery*s.SyncEvery
}

// WindowEnd returns the last write of the window of g, after which the writer syncs.
func (s Stream) WindowEnd(g int64) int64 {
	if g <= s.Blocks {
		return s.Blocks
	}
	return min(s.Floor(g)+s.SyncEvery, ((g-1)/s.Blocks+1)*s.Blocks)
}
