package payload

import (
	"bytes"
	"crypto/subtle"
	"encoding/binary"
)

// Shape is how far a content can be reduced, in percent. The stamps carry it, so that a Checker needs not be told.
type Shape struct {
	// Compressible is the share of a block that is zeros, in each part of a kibibyte.
	Compressible uint8 `json:"compressible,omitempty"`
	// Dedupable is the share of the blocks of 4 KiB that are also in other objects, or elsewhere in this one: they are
	// from a pool of 128. The first block of an object is never one of them, because it identifies the write.
	Dedupable uint8 `json:"dedupable,omitempty"`
}

const (
	cell       = 1024       // each part of a block that ends in zeros
	pooled     = 0x44534e43 // "CNSD" in a file: the stamp of a block of the pool
	unitBlocks = 32         // blocks of the pool come in a row of up to so many, which begins at a multiple of it
	pools      = 4          // different rows
	shapeShift = 48         // of a Shape in the field of the size
	sizeMask   = 1<<shapeShift - 1
)

func (s Shape) bits() uint64 {
	return uint64(s.Compressible)<<shapeShift | uint64(s.Dedupable)<<(shapeShift+8)
}

func shapeOf(bits uint64) Shape {
	return Shape{Compressible: uint8(bits >> shapeShift), Dedupable: uint8(bits >> (shapeShift + 8))}
}

// units are the rows of blocks in which an object is divided, how many there are, and how many are of the pool. A row
// is at most an eighth of the object.
func (id ID) units() (blocks, count, shared int64) {
	all := id.Size / Block
	blocks = unitBlocks
	for blocks > 1 && blocks*8 > all {
		blocks /= 2
	}
	count = all / blocks
	shared = (all*int64(id.Dedupable)/blocks + 50) / 100
	return blocks, count, max(0, min(shared, count-1))
}

// pool is the number of a block in the pool; false: it is not of the pool.
func (id ID) pool(block int64) (int, bool) {
	if id.Dedupable == 0 {
		return 0, false
	}
	blocks, count, shared := id.units()
	unit := block / blocks
	if unit < 1 || unit >= count || shared == 0 || unit*shared/(count-1) == (unit-1)*shared/(count-1) {
		return 0, false
	}
	row := mix(id.Key^mix(id.Writer+uint64(unit))) % pools
	return int(row)*unitBlocks + int(block%unitBlocks), true
}

// shaped writes one block of a content with a Shape to dst, which may be cut short.
func (id ID) shaped(dst []byte, block int64) {
	if n, ok := id.pool(block); ok {
		id.Shape.block(dst, n)
		return
	}
	a, b := id.windows(block)
	id.Shape.fill(dst, a, b)
	var s [stamp]byte
	id.stampTo(s[:], block)
	copy(dst, s[:])
}

// pooled writes block n of the pool to dst.
func (s Shape) block(dst []byte, n int) {
	a, b := ID{Key: pooled, Writer: s.bits()}.windows(int64(n))
	s.fill(dst, a, b)
	var head [stamp]byte
	binary.LittleEndian.PutUint32(head[:], pooled)
	binary.LittleEndian.PutUint32(head[4:], uint32(n))
	binary.LittleEndian.PutUint64(head[8:], s.bits())
	copy(dst, head[:])
}

// fill writes what follows the stamp of a block: of each cell the exclusive or of two windows, and then zeros.
func (s Shape) fill(dst []byte, a, b int) {
	w, random := arena(), cell-cell*int(s.Compressible)/100
	for from := 0; from < len(dst); from += cell {
		end := min(from+cell, len(dst))
		to := min(from+random, end)
		if begin := max(from, stamp); begin < to {
			at := begin - stamp
			n := to - begin
			subtle.XORBytes(dst[begin:to], w[a+at:a+at+n], w[b+at:b+at+n])
		}
		clear(dst[to:end])
	}
}

// judgePooled judges a block that begins with the stamp of a block of the pool, or with its beginning.
func (c *Checker) judgePooled(p []byte, block int64) Violation {
	want, ok := c.want.pool(block)
	if c.known && !ok {
		return Misplaced
	}
	shape, n := c.want.Shape, want
	if !c.known {
		if len(p) < stamp {
			return Sound // nothing shows which it is
		}
		shape, n = shapeOf(binary.LittleEndian.Uint64(p[8:])), int(binary.LittleEndian.Uint32(p[4:]))
	}
	switch {
	case shape.Compressible > 100 || shape.Dedupable > 100:
		return Corrupt
	case n < 0 || n >= pools*unitBlocks || n%unitBlocks != int(block%unitBlocks):
		return Misplaced
	}
	shape.block(c.scratch[:len(p)], n)
	if bytes.Equal(p, c.scratch[:len(p)]) {
		return Sound
	}
	if len(p) >= stamp && !bytes.Equal(p[4:8], c.scratch[4:8]) {
		return Misplaced
	}
	return Corrupt
}
