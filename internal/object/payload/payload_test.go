package payload

import (
	"bytes"
	"compress/flate"
	"math/rand/v2"
	"testing"
)

func content(id ID) []byte {
	b := make([]byte, id.Size)
	id.Fill(b, 0)
	return b
}

// check reads b in pieces of the given length.
func check(key uint64, b []byte, offset, length int64, piece int) (Violation, int64) {
	var c Checker
	c.Begin(key, offset, length, false)
	for len(b) > 0 {
		n := min(piece, len(b))
		c.Write(b[:n])
		b = b[n:]
	}
	return c.End()
}

func TestSoundInWhateverPieces(t *testing.T) {
	key := Key("bucket", "object")
	for _, size := range []int64{1, 3, 4, 20, 31, 32, 33, 4095, 4096, 4097, 4100, 8192, 8200, 100000} {
		b := content(ID{Key: key, Size: size, Writer: 42})
		for _, piece := range []int{1, 7, 4096, 5000, 1 << 20} {
			if v, at := check(key, b, 0, -1, piece); v != Sound {
				t.Errorf("%d bytes in pieces of %d: %s at %d", size, piece, v, at)
			}
			if v, at := check(key, b, 0, size, piece); v != Sound {
				t.Errorf("%d bytes, as many wanted, in pieces of %d: %s at %d", size, piece, v, at)
			}
		}
	}
}

func TestRanges(t *testing.T) {
	key := Key("bucket", "object")
	b := content(ID{Key: key, Size: 20000, Writer: 9})
	for _, r := range [][2]int64{{0, 4096}, {4096, 5000}, {8192, 100}, {16384, 3616}} {
		if v, at := check(key, b[r[0]:r[0]+r[1]], r[0], r[1], 1000); v != Sound {
			t.Errorf("range %v: %s at %d", r, v, at)
		}
		if v, _ := check(key, b[r[0]:r[0]+r[1]-1], r[0], r[1], 1000); v != Short {
			t.Errorf("range %v less a byte: %q, want short", r, v)
		}
	}
}

// Whichever bit of a content is flipped, it is noticed.
func TestEveryFlippedBitIsNoticed(t *testing.T) {
	key, r := Key("b", "o"), rand.New(rand.NewPCG(1, 1))
	for _, size := range []int64{64, 4096, 4097, 9000, 70000} {
		b := content(ID{Key: key, Size: size, Writer: r.Uint64()})
		for range 400 {
			i, bit := r.IntN(len(b)), byte(1)<<r.IntN(8)
			b[i] ^= bit
			v, at := check(key, b, 0, size, 4096)
			if v == Sound {
				t.Errorf("%d bytes: a flipped bit of byte %d was not noticed", size, i)
			} else if at > int64(i) || int64(i) >= at+Block {
				t.Errorf("%d bytes: byte %d was changed, %s was seen in the block at %d", size, i, v, at)
			}
			b[i] ^= bit
		}
	}
}

func TestViolations(t *testing.T) {
	key := Key("b", "o")
	good, newer := content(ID{Key: key, Size: 12288, Writer: 1}), content(ID{Key: key, Size: 12288, Writer: 2})
	tests := []struct {
		name string
		got  []byte
		want Violation
		at   int64
	}{
		{"of another object", content(ID{Key: Key("b", "p"), Size: 12288}), Misplaced, 0},
		{"blocks exchanged", append(bytes.Clone(good[:4096]), good[8192:]...), Misplaced, 4096},
		{"half of it overwritten", append(bytes.Clone(good[:8192]), newer[8192:]...), Mixed, 8192},
		{"cut at a block", good[:8192], Short, 8192},
		{"cut within a block", good[:8000], Short, 8000},
		{"longer than it says", append(bytes.Clone(good), good[:10]...), Corrupt, 12288},
		{"zeros", make([]byte, 12288), Foreign, 0},
		{"another program's", bytes.Repeat([]byte("hello "), 2000), Foreign, 0},
		{"nothing", nil, Short, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if v, at := check(key, tt.got, 0, 12288, 1500); v != tt.want || at != tt.at {
				t.Errorf("%q at %d, want %q at %d", v, at, tt.want, tt.at)
			}
		})
	}
}

// However short an object was cut, it is noticed, if more is left than the
// beginning of a stamp that all have; so is one that is of another name.
func TestCutShort(t *testing.T) {
	key := Key("b", "o")
	for _, size := range []int64{20, 64, 4096, 70000} {
		b := content(ID{Key: key, Size: size, Writer: 7})
		for left := range min(size, 200) {
			v, _ := check(key, b[:left], 0, -1, 4096)
			if unknowable := left > 0 && left <= 8; unknowable != (v == Sound) || !unknowable && v != Short {
				t.Errorf("%d bytes of %d: %q", left, size, v)
			}
		}
	}
	if v, _ := check(key, content(ID{Key: Key("b", "p"), Size: 25}), 0, -1, 4096); v != Misplaced {
		t.Errorf("25 bytes of another object: %q", v)
	}
}

func TestZero(t *testing.T) {
	b := content(ID{Size: 5000, Zero: true})
	var c Checker
	c.Begin(1, 0, 5000, true)
	c.Write(b)
	if v, _ := c.End(); v != Sound {
		t.Errorf("zeros: %s", v)
	}
	b[4500] = 1
	c.Begin(1, 0, 5000, true)
	c.Write(b)
	if v, at := c.End(); v != Corrupt || at != 4096 {
		t.Errorf("not quite zeros: %q at %d", v, at)
	}
}

// Neither within an object nor between two is there anything to compress.
func TestIncompressible(t *testing.T) {
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestCompression)
	total := 0
	for i := range 40 {
		b := content(ID{Key: Key("b", "o"), Size: 64 << 10, Writer: uint64(i)})
		_, _ = w.Write(b)
		total += len(b)
	}
	_ = w.Close()
	// 32 bytes of stamp in 4096 may be compressed away, 0.8 %.
	if ratio := float64(packed.Len()) / float64(total); ratio < 0.99 {
		t.Errorf("%d bytes became %d (%.3f)", total, packed.Len(), ratio)
	}
	seen := map[string]int64{}
	for i := range uint64(5000) {
		var b [Block]byte
		ID{Key: i % 70, Size: 1 << 30, Writer: i}.block(b[:], int64(i%13))
		if _, again := seen[string(b[stamp:stamp+64])]; again {
			t.Fatal("two blocks are alike")
		}
		seen[string(b[stamp:stamp+64])] = 1
	}
}

func TestWriterIsLearnt(t *testing.T) {
	var c Checker
	c.Begin(Key("b", "o"), 0, -1, false)
	c.Write(content(ID{Key: Key("b", "o"), Size: 100, Writer: 77}))
	if v, _ := c.End(); v != Sound || c.Writer() != 77 {
		t.Errorf("%q, write %d, want 77", v, c.Writer())
	}
}

func BenchmarkFill(b *testing.B) {
	p := make([]byte, 64<<10)
	b.SetBytes(int64(len(p)))
	for i := range b.N {
		ID{Key: 1, Size: int64(len(p)), Writer: uint64(i)}.Fill(p, 0)
	}
}

func BenchmarkCheck(b *testing.B) {
	id := ID{Key: 1, Size: 64 << 10, Writer: 1}
	p := content(id)
	b.SetBytes(int64(len(p)))
	var c Checker
	for range b.N {
		c.Begin(1, 0, -1, false)
		c.Write(p)
		if v, _ := c.End(); v != Sound {
			b.Fatal(v)
		}
	}
}
