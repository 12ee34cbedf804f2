package integrity

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
)

// A block has a header of 64 bytes, little endian: magic, ID, seed, blocks (8 bytes each), block size, writes between
// syncs (4 each), index, generation (8 each), CRC-32C of the block with 0 in its place (4), 4 bytes of 0. Random bytes
// that depend on the generation follow, so that any part of one write differs from that of another.
const (
	header  = 64
	sumFrom = 56
	sumTo   = 60
)

var (
	magic      = [8]byte{'C', 'N', 'S', 'B', 'B', 'L', 'K', '1'}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// Encode fills b, of BlockSize bytes, with the block of write g.
func (s Stream) Encode(b []byte, g int64) {
	index := s.At(g)
	le := binary.LittleEndian
	copy(b, magic[:])
	le.PutUint64(b[8:], s.ID)
	le.PutUint64(b[16:], s.Seed)
	le.PutUint64(b[24:], uint64(s.Blocks))
	le.PutUint32(b[32:], uint32(s.BlockSize))
	le.PutUint32(b[36:], uint32(s.SyncEvery))
	le.PutUint64(b[40:], uint64(index))
	le.PutUint64(b[48:], uint64(g))
	le.PutUint64(b[sumFrom:], 0)
	random := rand.NewPCG(s.ID^s.Seed, uint64(g))
	for at := header; at < s.BlockSize; at += 8 {
		le.PutUint64(b[at:], random.Uint64())
	}
	le.PutUint32(b[sumFrom:], sumOf(b[:s.BlockSize]))
}

func sumOf(b []byte) uint32 {
	sum := crc32.Update(0, castagnoli, b[:sumFrom])
	sum = crc32.Update(sum, castagnoli, []byte{0, 0, 0, 0})
	return crc32.Update(sum, castagnoli, b[sumTo:])
}

// State is what a block of an image is.
type State uint8

// The states. All but Written and Blank are violations.
const (
	Written   State = iota // as one write left it
	Blank                  // zeros: not written yet
	Torn                   // content that no write leaves: parts of several, or others
	Foreign                // whole, of another stream
	Misplaced              // whole, of this stream and another place
)

// Block is a block of an image.
type Block struct {
	State      State
	Generation int64 // of a block that is Written or Misplaced
}

// ErrNoStream is returned for a block that is not whole.
var ErrNoStream = errors.New("no block of a stream")

// StreamOf returns the stream that a block names, and its index there. b has at least the bytes of the block.
func StreamOf(b []byte) (s Stream, index int64, err error) {
	s, index, _, err = parse(b)
	return s, index, err
}

// parse reads a block of any stream and checks its bounds and its checksum.
func parse(b []byte) (s Stream, index, generation int64, err error) {
	if len(b) < Unit || [8]byte(b[:8]) != magic {
		return s, 0, 0, ErrNoStream
	}
	le := binary.LittleEndian
	s = Stream{ID: le.Uint64(b[8:]), Seed: le.Uint64(b[16:]), Blocks: int64(le.Uint64(b[24:])),
		BlockSize: int(le.Uint32(b[32:])), SyncEvery: int64(le.Uint32(b[36:]))}
	index, generation = int64(le.Uint64(b[40:])), int64(le.Uint64(b[48:]))
	switch {
	case s.Validate() != nil || s.BlockSize > len(b),
		index < 0 || index >= s.Blocks || generation < 1,
		le.Uint32(b[sumFrom:]) != sumOf(b[:s.BlockSize]):
		return Stream{}, 0, 0, ErrNoStream
	}
	return s, index, generation, nil
}

// Decode says what b, of BlockSize bytes, is at a place of an image.
func (s Stream) Decode(b []byte, index int64) Block {
	of, its, g, err := parse(b)
	switch {
	case err != nil && isBlank(b):
		return Block{State: Blank}
	case err != nil:
		return Block{State: Torn}
	case of != s:
		return Block{State: Foreign}
	case its != index || s.At(g) != index:
		return Block{State: Misplaced, Generation: g}
	}
	return Block{Generation: g}
}

func isBlank(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
