package payload

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// deduped is the share of pieces, in percent, that a store that keeps equal ones once does not keep.
func deduped(objects [][]byte, piece int) float64 {
	seen, n := map[[32]byte]bool{}, 0
	for _, b := range objects {
		for ; len(b) > 0; n++ {
			k := min(piece, len(b))
			seen[sha256.Sum256(b[:k])] = true
			b = b[k:]
		}
	}
	return 100 * (1 - float64(len(seen))/float64(n))
}

// compressed is what compression saves, in percent, of pieces that are compressed one by one.
func compressed(t *testing.T, b []byte, piece int) float64 {
	t.Helper()
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	for left := b; len(left) > 0; {
		k := min(piece, len(left))
		w.Reset(&packed)
		_, _ = w.Write(left[:k])
		_ = w.Close()
		left = left[k:]
	}
	return 100 * (1 - float64(packed.Len())/float64(len(b)))
}

// TestShapes checks that a compressor and a deduplicator recover the degrees, and that contents are still checked.
func TestShapes(t *testing.T) {
	for _, s := range []Shape{{}, {Compressible: 50}, {Compressible: 90}, {Dedupable: 30}, {Dedupable: 75},
		{Compressible: 40, Dedupable: 60}} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			var objects [][]byte
			for i, sizes := range [][2]int64{{30, 2 << 20}, {100, 64 << 10}, {40, 100_000}} {
				for k := range sizes[0] {
					key := Key("b", fmt.Sprint(i, k))
					b := content(ID{Key: key, Size: sizes[1], Writer: uint64(k) + 1, Shape: s})
					if v, at := check(key, b, 0, -1, 5000); v != Sound {
						t.Fatalf("%d bytes: %s at %d", len(b), v, at)
					}
					objects = append(objects, b)
				}
			}
			if got := deduped(objects, Block); math.Abs(got-float64(s.Dedupable)) > 3 {
				t.Errorf("%.1f %% deduplicated, want %d", got, s.Dedupable)
			}
			big := objects[:30]
			if got := deduped(big, unitBlocks*Block); math.Abs(got-float64(s.Dedupable)) > 4 { // steps of 1/16
				t.Errorf("%.1f %% deduplicated in pieces of %d KiB, want %d", got, unitBlocks*Block>>10, s.Dedupable)
			}
			for _, piece := range []int{Block, 64 << 10} {
				if got := compressed(t, bytes.Join(big[:2], nil), piece); math.Abs(got-float64(s.Compressible)) > 3 {
					t.Errorf("%.1f %% compressed in pieces of %d, want %d", got, piece, s.Compressible)
				}
			}
		})
	}
}

// TestShapedContentsAreChecked checks that changes of shaped contents are found, in ranges too.
func TestShapedContentsAreChecked(t *testing.T) {
	key, r, s := Key("b", "o"), rand.New(rand.NewPCG(1, 1)), Shape{Compressible: 50, Dedupable: 50}
	for _, size := range []int64{1, 20, 31, 40, 4096, 9000, 70000, 300_000} {
		id := ID{Key: key, Size: size, Writer: 7, Shape: s}
		b := content(id)
		for from := int64(0); from < size; from += 3 * Block {
			n := min(size-from, 5000)
			if v, at := check(key, b[from:from+n], from, n, 4096); v != Sound {
				t.Errorf("%d bytes, a range from %d: %s at %d", size, from, v, at)
			}
		}
		if size < 40 {
			continue
		}
		for range 300 {
			i, bit := r.IntN(len(b)), byte(1)<<r.IntN(8)
			b[i] ^= bit
			if v, _ := check(key, b, 0, size, 4096); v == Sound {
				t.Errorf("%d bytes: a flipped bit of byte %d was not noticed", size, i)
			}
			from := int64(i) / Block * Block
			if v, _ := check(key, b[from:min(size, from+Block)], from, min(Block, size-from), 4096); v == Sound &&
				i%Block >= stamp {
				t.Errorf("%d bytes: a flipped bit of byte %d was not noticed in a range", size, i)
			}
			b[i] ^= bit
		}
	}
	id := ID{Key: key, Size: 1 << 20, Writer: 7, Shape: s}
	b, other := content(id), content(ID{Key: key, Size: 1 << 20, Writer: 8, Shape: Shape{Dedupable: 20}})
	if v, _ := check(key, append(bytes.Clone(b[:1<<19]), other[1<<19:]...), 0, 1<<20, 4096); v == Sound {
		t.Error("blocks of another shape were not noticed")
	}
	moved := append(bytes.Clone(b[:1<<19]), b[1<<19+unitBlocks*Block:]...)
	if v, _ := check(key, append(moved, b[1<<19:1<<19+unitBlocks*Block]...), 0, 1<<20, 4096); v == Sound {
		t.Error("moved blocks were not noticed")
	}
}

func BenchmarkFillShaped(b *testing.B) {
	p := make([]byte, 64<<10)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for i := range b.N {
		ID{Key: 1, Size: int64(len(p)), Writer: uint64(i), Shape: Shape{50, 50}}.Fill(p, 0)
	}
}

func BenchmarkCheckShaped(b *testing.B) {
	p := content(ID{Key: 1, Size: 64 << 10, Writer: 1, Shape: Shape{50, 50}})
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	var c Checker
	for range b.N {
		c.Begin(1, 0, -1, false)
		c.Write(p)
		if v, _ := c.End(); v != Sound {
			b.Fatal(v)
		}
	}
}
