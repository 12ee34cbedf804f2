package integrity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// randomStream returns a small stream, so that passes, windows and blocks meet in all ways.
func randomStream(r *rand.Rand) Stream {
	blocks := 1 + r.Int64N(60)
	return Stream{ID: r.Uint64(), Seed: r.Uint64(), Blocks: blocks, BlockSize: Unit, SyncEvery: 1 + r.Int64N(blocks)}
}

func seeded(t *testing.T, n int, f func(t *testing.T, r *rand.Rand)) {
	t.Helper()
	for seed := range n {
		f(t, rand.New(rand.NewPCG(uint64(seed), 0)))
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

func TestEachPassWritesEachBlockOnce(t *testing.T) {
	seeded(t, 200, func(t *testing.T, r *rand.Rand) {
		s := randomStream(r)
		for pass := range int64(4) {
			seen := map[int64]bool{}
			for i := range s.Blocks {
				g := pass*s.Blocks + i + 1
				at := s.At(g)
				if at < 0 || at >= s.Blocks || seen[at] {
					t.Fatalf("%+v: write %d goes to block %d", s, g, at)
				}
				seen[at] = true
			}
		}
	})
}

func TestLast(t *testing.T) {
	seeded(t, 200, func(t *testing.T, r *rand.Rand) {
		s := randomStream(r)
		last := make([]int64, s.Blocks)
		for g := int64(1); g <= 4*s.Blocks; g++ {
			last[s.At(g)] = g
			b := r.Int64N(s.Blocks)
			if got := s.Last(b, g); got != last[b] {
				t.Fatalf("%+v: last write to block %d up to %d is %d, want %d", s, b, g, got, last[b])
			}
		}
	})
}

func TestWindows(t *testing.T) {
	s := Stream{Blocks: 10, SyncEvery: 4}
	var got []string
	for _, g := range []int64{1, 10, 11, 14, 15, 18, 19, 20, 21} {
		got = append(got, fmt.Sprint(g, " after ", s.Floor(g), " until ", s.WindowEnd(g)))
	}
	want := []string{"1 after 0 until 10", "10 after 0 until 10", "11 after 10 until 14", "14 after 10 until 14",
		"15 after 14 until 18", "18 after 14 until 18", "19 after 18 until 20", "20 after 18 until 20",
		"21 after 20 until 24"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// device is a disk that keeps what was synced, and of later writes any in any order.
type device struct {
	Stream
	durable []int64 // generations by block
	cached  []int64 // writes since the last sync, in order
}

func (s Stream) device() *device { return &device{Stream: s, durable: make([]int64, s.Blocks)} }

// writeTo does the writes up to g, with the syncs between, and returns the acknowledgements; the time is the
// generation.
func (d *device) writeTo(from, g int64) (acks []Ack) {
	for w := from; w <= g; w++ {
		d.cached = append(d.cached, w)
		if w == d.WindowEnd(w) {
			d.image(nil, func(int64) bool { return true })
			acks = append(acks, Ack{At: w, Generation: w})
		}
	}
	return acks
}

// image applies those of the cached writes that keep chooses, in a random order, or, with a nil r, all in order and
// for good.
func (d *device) image(r *rand.Rand, keep func(int64) bool) []int64 {
	order, to := slices.Clone(d.cached), slices.Clone(d.durable)
	if r != nil {
		r.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	} else {
		to, d.cached = d.durable, nil
	}
	for _, g := range order {
		if keep(g) {
			to[d.At(g)] = g
		}
	}
	return to
}

func blocksOf(generations []int64) []Block {
	var list []Block
	for _, g := range generations {
		b := Block{Generation: g}
		if g == 0 {
			b.State = Blank
		}
		list = append(list, b)
	}
	return list
}

// TestHonestDevices checks that no state that a device can have at one instant is a violation, after power loss or not,
// and also where the writer was started again at the beginning of a window.
func TestHonestDevices(t *testing.T) {
	seeded(t, 3000, func(t *testing.T, r *rand.Rand) {
		s := randomStream(r)
		d := s.device()
		now := 1 + r.Int64N(4*s.Blocks)
		acks := d.writeTo(1, now)
		if r.IntN(2) == 0 { // power loss, and a restart from what is there
			d.durable, d.cached = d.image(r, func(int64) bool { return r.IntN(2) == 0 }), nil
			from := s.Floor(slices.Max(d.durable)) + 1
			now = from + r.Int64N(2*s.SyncEvery)
			for _, a := range d.writeTo(from, now) {
				a.Epoch = 1
				acks = append(acks, a)
			}
		}
		share := r.Float64()
		image := d.image(r, func(int64) bool { return r.Float64() < share })
		report := Judge(s, blocksOf(image), 0)
		last := int64(0)
		if len(acks) > 0 {
			last = acks[len(acks)-1].At
		}
		report.Compare(acks, Cut{From: last, To: last})
		if report.Violations() != 0 {
			t.Errorf("%+v at %d: image %v: %+v %v", s, now, image, report, report.First)
		}
	})
}

// TestLies checks that each lie of a device is found, by its kind.
func TestLies(t *testing.T) {
	// A state of blocks and windows in which every lie is one: more than two passes, in the middle of a window.
	make16 := func(r *rand.Rand) (Stream, *device, []Ack, int64) {
		s := randomStream(r)
		s.Blocks += 8
		s.SyncEvery = 1 + r.Int64N(4)
		d := s.device()
		now := s.Floor(2*s.Blocks+1+r.Int64N(s.Blocks)) + 1 // the first write of a window
		return s, d, d.writeTo(1, now), now
	}
	all := func(int64) bool { return true }
	lies := map[Kind]func(r *rand.Rand, s Stream, d *device, image []Block, now int64) []Block{
		KindStale: func(r *rand.Rand, s Stream, d *device, image []Block, now int64) []Block { // drops a synced write
			g := s.Floor(now) - r.Int64N(s.Blocks)
			image[s.At(g)].Generation = s.Last(s.At(g), g-1)
			return image
		},
		KindTorn: func(r *rand.Rand, _ Stream, _ *device, image []Block, _ int64) []Block {
			image[r.IntN(len(image))] = Block{State: Torn}
			return image
		},
		KindForeign: func(r *rand.Rand, _ Stream, _ *device, image []Block, _ int64) []Block {
			image[r.IntN(len(image))] = Block{State: Foreign}
			return image
		},
		KindMisplaced: func(r *rand.Rand, _ Stream, _ *device, image []Block, _ int64) []Block { // swaps two blocks
			i := r.IntN(len(image))
			k := (i + 1 + r.IntN(len(image)-1)) % len(image)
			image[i], image[k] = image[k], image[i]
			image[i].State, image[k].State = Misplaced, Misplaced
			return image
		},
		KindLost: func(r *rand.Rand, s Stream, _ *device, _ []Block, now int64) []Block { // an older instant
			old := s.device()
			old.writeTo(1, s.Floor(now)-1-r.Int64N(2*s.Blocks))
			return blocksOf(old.image(r, all))
		},
		KindLate: func(r *rand.Rand, s Stream, d *device, _ []Block, now int64) []Block { // a later instant
			d.writeTo(now+1, now+s.SyncEvery+1)
			return blocksOf(d.image(r, all))
		},
	}
	for kind, lie := range lies {
		t.Run(string(kind), func(t *testing.T) {
			seeded(t, 500, func(t *testing.T, r *rand.Rand) {
				s, d, acks, now := make16(r)
				honest := blocksOf(d.image(r, all))
				cut := Cut{From: now, To: now}
				later := s.device().writeTo(1, now+2*s.SyncEvery)
				report := Judge(s, lie(r, s, d, slices.Clone(honest), now), 0)
				report.Compare(append(acks, later[len(acks):]...), cut)
				if report.Counts[kind] == 0 || report.First == nil {
					t.Errorf("%+v at %d: not found: %+v", s, now, report)
				}
			})
		})
	}
}

// TestTwoInstants checks that an image is found whose first blocks are copied at one instant, and the others after at
// least one more sync, whenever the two states differ where it shows.
func TestTwoInstants(t *testing.T) {
	found := 0
	seeded(t, 1000, func(t *testing.T, r *rand.Rand) {
		s := randomStream(r)
		d := s.device()
		now := s.Blocks + 1 + r.Int64N(2*s.Blocks)
		d.writeTo(1, now)
		all := func(int64) bool { return true }
		first := d.image(r, all)
		then := now + 1 + r.Int64N(3*s.SyncEvery)
		d.writeTo(now+1, then)
		second := d.image(r, all)
		k := r.IntN(len(first) + 1)
		image := append(slices.Clone(first[:k]), second[k:]...)
		newest := slices.Max(image)
		mixed := false
		for b, g := range image {
			mixed = mixed || g < s.Last(int64(b), s.Floor(newest))
		}
		report := Judge(s, blocksOf(image), 0)
		if (report.Counts[KindStale] > 0) != mixed {
			t.Errorf("%+v: %v and %v at %d: %+v", s, first, second, k, report)
		}
		if mixed {
			found++
		}
	})
	if found < 100 {
		t.Errorf("only %d images of two instants", found)
	}
}

func TestReport(t *testing.T) {
	s := Stream{Blocks: 4, SyncEvery: 2, BlockSize: Unit}
	d := s.device()
	d.writeTo(1, 8) // 5,6 | 7,8
	image := blocksOf(d.image(nil, func(int64) bool { return true }))
	image[s.At(6)].Generation = s.Last(s.At(6), 5)
	image[s.At(7)].Generation = s.Last(s.At(7), 6)
	r := Judge(s, image, 0)
	want := &Report{Stream: s, Checked: 4, Newest: 8, Synced: 6, Counts: map[Kind]int64{KindStale: 1}, Missing: []int64{7},
		First: &Violation{Kind: KindStale, Offset: s.At(6) * Unit, Found: s.Last(s.At(6), 5), Want: 6, Newest: 8, Synced: 6}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	age, known := r.Compare([]Ack{{At: 100, Generation: 6}, {At: 200, Generation: 10}}, Cut{From: 120, To: 190})
	if !known || age != 190-100 {
		t.Errorf("age %d, %v", age, known)
	}
	if r.Violations() != 1 { // 7 is missing, and was not acknowledged
		t.Errorf("%+v", r)
	}
	if r = Judge(s, image, 8); r.Counts[KindStale] != 2 {
		t.Errorf("the writer knew of 8 writes: %+v", r)
	}
}

func TestBlocks(t *testing.T) {
	s := Stream{ID: 1, Seed: 2, Blocks: 9, BlockSize: 2 * Unit, SyncEvery: 3}
	encode := func(s Stream, g int64) []byte {
		b := make([]byte, s.BlockSize)
		s.Encode(b, g)
		return b
	}
	other := s
	other.ID = 3
	old, torn := encode(s, 5), encode(s, 5+9*s.Blocks)
	copy(torn[Unit:], old[Unit:])
	flipped := encode(s, 5)
	flipped[8191] ^= 1
	cases := []struct {
		name string
		b    []byte
		want Block
	}{
		{"written", old, Block{Generation: 5}},
		{"blank", make([]byte, s.BlockSize), Block{State: Blank}},
		{"two halves", torn, Block{State: Torn}},
		{"one bit", flipped, Block{State: Torn}},
		{"half blank", append(make([]byte, Unit), old[Unit:]...), Block{State: Torn}},
		{"other writer", encode(other, 5), Block{State: Foreign}},
		{"other place", encode(s, 6), Block{State: Misplaced, Generation: 6}},
	}
	for _, c := range cases {
		if got := s.Decode(c.b, s.At(5)); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if got, index, err := StreamOf(old); got != s || index != s.At(5) || err != nil {
		t.Errorf("%+v, %d, %v", got, index, err)
	}
}

func FuzzBlock(f *testing.F) {
	s := Stream{ID: 1, Seed: 2, Blocks: 9, BlockSize: Unit, SyncEvery: 3}
	b := make([]byte, s.BlockSize)
	f.Add(slices.Clone(b), int64(0))
	s.Encode(b, 17)
	f.Add(slices.Clone(b), s.At(17))
	f.Add(b[:100], int64(1))
	f.Fuzz(func(t *testing.T, b []byte, index int64) {
		if of, at, err := StreamOf(b); err == nil {
			if of.Validate() != nil || at < 0 || at >= of.Blocks {
				t.Fatalf("%+v at %d", of, at)
			}
			_ = of.Decode(b[:of.BlockSize], index)
		}
		got := s.Decode(b, index)
		if got.State == Written && (got.Generation < 1 || s.At(got.Generation) != index) {
			t.Fatalf("%+v at %d", got, index)
		}
	})
}

func FuzzAcks(f *testing.F) {
	f.Add(AcksHead(Stream{ID: 7}) + AckLine(5, 6) + "12")
	f.Add("stream x")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAcks(strings.NewReader(text))
		if err != nil {
			return
		}
		if len(a.List) > strings.Count(text, "\n") {
			t.Fatalf("%d acknowledgements", len(a.List))
		}
	})
}
