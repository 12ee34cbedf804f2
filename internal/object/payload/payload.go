// Package payload makes the contents of objects and checks them, at the speed of memory. A content describes itself:
// each block of 4 KiB begins with a stamp of its object, its offset and its write. The rest of a block is the
// exclusive or of two windows of one random arena, chosen by the stamp: it cannot be compressed, no two blocks are
// alike, and every process can check it, since the arena is always the same. A Shape makes contents that a store can
// compress or deduplicate to a given degree.
package payload

import (
	"bytes"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
)

const (
	// Block is how many bytes share a stamp.
	Block = 4096
	stamp = 32
	magic = 0x31534e43 // "CNS1" in a file
	// arenaWords is a power of two. Two windows of 2¹⁷ each make 2³³ blocks.
	arenaWords = 1 << 17
)

// arena is drawn once, from a fixed seed: ChaCha8 is the same everywhere.
var arena = sync.OnceValue(func() []byte {
	rng := rand.NewChaCha8([32]byte([]byte("cnsbench object bodies, arena 1.")))
	b := make([]byte, arenaWords*8+Block)
	_, _ = rng.Read(b) // never fails
	return b
})

// ID names the content of an object.
type ID struct {
	Key    uint64 // Key(container, object)
	Size   int64  // of the whole object
	Writer uint64 // of the write that made it
	Zero   bool   // nothing but zeros, without stamps
	Shape
}

// Key is the hash of an object's name (FNV-1a, 64 bits).
func Key[T ~string | ~[]byte](container, object T) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(container) {
		h = (h ^ uint64(container[i])) * 1099511628211
	}
	h = (h ^ '/') * 1099511628211
	for i := range len(object) {
		h = (h ^ uint64(object[i])) * 1099511628211
	}
	return h
}

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// windows are the places in the arena of one block.
func (id ID) windows(block int64) (a, b int) {
	h := mix(id.Key ^ mix(id.Writer+uint64(block)*0x9E3779B97F4A7C15) ^ mix(uint64(id.Size)|id.Shape.bits()))
	a, b = int(h%arenaWords), int(h>>32%arenaWords)
	if a == b { // they would cancel out
		b ^= 1
	}
	return a * 8, b * 8
}

func (id ID) stampTo(dst []byte, block int64) {
	binary.LittleEndian.PutUint32(dst, magic)
	binary.LittleEndian.PutUint32(dst[4:], uint32(block))
	size := uint64(id.Size)
	if id.Size >= stamp { // of a shorter object the size must be seen
		size |= id.Shape.bits()
	}
	binary.LittleEndian.PutUint64(dst[8:], size)
	binary.LittleEndian.PutUint64(dst[16:], id.Key)
	binary.LittleEndian.PutUint64(dst[24:], id.Writer)
}

// block writes one block to dst, which may be cut short.
func (id ID) block(dst []byte, block int64) {
	if id.Shape != (Shape{}) {
		id.shaped(dst, block)
		return
	}
	a, b := id.windows(block)
	w := arena()
	if len(dst) > stamp {
		subtle.XORBytes(dst[stamp:], w[a:a+len(dst)-stamp], w[b:b+len(dst)-stamp])
		id.stampTo(dst, block)
		return
	}
	var s [stamp]byte
	id.stampTo(s[:], block)
	copy(dst, s[:])
}

// Fill writes the content from offset, a multiple of Block, to dst.
func (id ID) Fill(dst []byte, offset int64) {
	if id.Zero {
		clear(dst)
		return
	}
	for block := offset / Block; len(dst) > 0; block++ {
		n := min(Block, len(dst))
		id.block(dst[:n], block)
		dst = dst[n:]
	}
}

// Violation is what is wrong with a content that was read.
type Violation string

// The violations.
const (
	Sound     Violation = ""
	Foreign   Violation = "foreign"   // no stamp: another program wrote it
	Misplaced Violation = "misplaced" // it belongs to another object, or elsewhere in this one
	Mixed     Violation = "mixed"     // its blocks are of different writes, or of another size
	Corrupt   Violation = "corrupt"   // the stamp is right, the rest of the block is not
	Short     Violation = "short"     // its length is not that of its stamp, or of the request
)

// Checker checks the content of one object as it arrives, in pieces of any
// length. It takes no memory beyond its own. It is not safe for concurrent
// use; Begin makes it ready for another object.
type Checker struct {
	want    ID
	offset  int64 // of the next byte
	end     int64 // < 0: the end of the object, by its stamp
	known   bool  // want.Size and want.Writer have been read
	have    int   // bytes in pending
	first   Violation
	at      int64
	pending [Block]byte
	scratch [Block]byte
}

// Begin expects the object with that key from offset, a multiple of Block, on,
// length bytes of it; a negative length: all that there are.
func (c *Checker) Begin(key uint64, offset, length int64, zero bool) {
	c.want = ID{Key: key, Zero: zero}
	c.offset, c.end, c.known, c.have, c.first, c.at = offset, -1, false, 0, Sound, 0
	if length >= 0 {
		c.end = offset + length
	}
}

// Write takes the next bytes. It never fails: End returns the violation.
func (c *Checker) Write(p []byte) {
	for len(p) > 0 && c.first == Sound {
		if c.have == 0 && len(p) >= Block {
			c.check(p[:Block])
			p = p[Block:]
			continue
		}
		n := copy(c.pending[c.have:], p)
		p = p[n:]
		if c.have += n; c.have == Block {
			c.have = 0
			c.check(c.pending[:])
		}
	}
}

// End returns the first violation and its offset in the object; Writer returns the write of the content.
func (c *Checker) End() (Violation, int64) {
	if c.have > 0 {
		n := c.have
		c.have = 0
		c.check(c.pending[:n])
	}
	end := c.end
	if end < 0 && c.offset == 0 {
		end = 1 // an object that was truncated to 0 bytes looks like an empty one
	}
	if c.known && (end < 0 || end > c.want.Size) {
		end = c.want.Size
	}
	if c.first == Sound && end >= 0 && c.offset != end {
		c.fail(Short)
	}
	return c.first, c.at
}

// Writer is the write that made the content; 0 if that is not known.
func (c *Checker) Writer() uint64 { return c.want.Writer }

func (c *Checker) fail(v Violation) { c.first, c.at = v, c.offset }

// check takes one block, the last of which may be cut short.
func (c *Checker) check(p []byte) {
	if v := c.judge(p); v != Sound {
		c.fail(v)
		return
	}
	c.offset += int64(len(p))
}

func (c *Checker) judge(p []byte) Violation {
	if c.want.Zero {
		clear(c.scratch[:len(p)])
		if !bytes.Equal(p, c.scratch[:len(p)]) {
			return Corrupt
		}
		return Sound
	}
	block := c.offset / Block
	if len(p) >= 4 && binary.LittleEndian.Uint32(p) == pooled {
		return c.judgePooled(p, block)
	}
	if v := c.judgeStamp(p, block); v != Sound {
		return v
	}
	if len(p) < stamp && !c.known {
		return Sound // judgeStamp saw all that can be known
	}
	c.want.block(c.scratch[:len(p)], block)
	if !bytes.Equal(p, c.scratch[:len(p)]) {
		return Corrupt
	}
	return Sound
}

// judgeStamp looks at the stamp of a block, as much as there is of it, and
// learns size and writer from the first.
func (c *Checker) judgeStamp(p []byte, block int64) Violation {
	var s [stamp]byte
	c.want.stampTo(s[:], block)
	n := min(len(p), stamp)
	switch {
	case !bytes.Equal(p[:min(n, 4)], s[:min(n, 4)]):
		return Foreign
	case n < stamp && c.offset == 0 && c.end < 0: // it is all that there is of the object
		c.want.Size = int64(n)
		c.want.stampTo(s[:], block)
		switch {
		case !bytes.Equal(p[:min(n, 16)], s[:min(n, 16)]):
			return Short
		case !bytes.Equal(p[:min(n, 24)], s[:min(n, 24)]):
			return Misplaced
		}
		return Sound
	case n < stamp:
		return Sound // the rest is compared as a whole where it is known
	case binary.LittleEndian.Uint32(p[4:]) != uint32(block), binary.LittleEndian.Uint64(p[16:]) != c.want.Key:
		return Misplaced
	}
	size, writer := binary.LittleEndian.Uint64(p[8:]), binary.LittleEndian.Uint64(p[24:])
	if !c.known {
		c.known, c.want.Size, c.want.Writer = true, int64(size&sizeMask), writer
		c.want.Shape = shapeOf(size)
	}
	if size != uint64(c.want.Size)|c.want.Shape.bits() || writer != c.want.Writer {
		return Mixed
	}
	if c.want.Compressible > 100 || c.want.Dedupable > 100 {
		return Corrupt
	}
	if _, shared := c.want.pool(block); shared {
		return Misplaced // the object has another block there
	}
	return Sound
}

// String names a content for people.
func (id ID) String() string {
	return fmt.Sprintf("key %016x, %d bytes, write %016x", id.Key, id.Size, id.Writer)
}
