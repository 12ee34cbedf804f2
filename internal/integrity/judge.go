package integrity

import "fmt"

// Kind is the kind of a violation.
type Kind string

// The kinds.
const (
	KindStale     Kind = "stale"     // a synced write is missing, while a later one is there
	KindTorn      Kind = "torn"      // see Torn
	KindMisplaced Kind = "misplaced" // see Misplaced
	KindForeign   Kind = "foreign"   // see Foreign
	KindLost      Kind = "lost"      // a write was acknowledged before the cut and is missing, as are all later ones
	KindLate      Kind = "late"      // a write is there that began after the image was reported as complete
)

// Kinds lists the kinds.
var Kinds = []Kind{KindStale, KindTorn, KindMisplaced, KindForeign, KindLost, KindLate}

// Violation is one violation.
type Violation struct {
	Kind   Kind  `json:"kind"`
	Offset int64 `json:"offset"`          // bytes, of the block
	Found  int64 `json:"found"`           // generation of the block; 0: not written, or not known
	Want   int64 `json:"want"`            // least generation that it should have
	Newest int64 `json:"newest"`          // greatest generation of the image
	Synced int64 `json:"synced,omitzero"` // writes up to this one were durable before Newest began
}

// String describes the violation for a message.
func (v Violation) String() string {
	switch v.Kind {
	case KindStale:
		return fmt.Sprintf("the block at %d has generation %d, not %d or later, which was synced before generation %d began",
			v.Offset, v.Found, v.Want, v.Newest)
	case KindMisplaced:
		return fmt.Sprintf("the block at %d is generation %d of another place, not %d or later of its own", v.Offset,
			v.Found, v.Want)
	case KindForeign:
		return fmt.Sprintf("the block at %d is of another writer, not generation %d or later", v.Offset, v.Want)
	case KindLost:
		return fmt.Sprintf("the newest generation is %d, and %d was acknowledged before", v.Newest, v.Want)
	case KindLate:
		return fmt.Sprintf("generation %d began after the image was complete, when %d was the last", v.Newest, v.Want)
	}
	return fmt.Sprintf("the block at %d is of no write of the run; want generation %d or later", v.Offset, v.Want)
}

// Report is the judgement on one image.
type Report struct {
	Stream Stream `json:"stream"`
	// Checked is the number of blocks that were read; 0: nothing of a stream was found.
	Checked int64 `json:"checked"`
	Newest  int64 `json:"newest"` // greatest generation
	// Synced is the last write that the image must have: as Stream.Floor(Newest), or what the caller knew.
	Synced int64          `json:"synced"`
	Counts map[Kind]int64 `json:"counts"`
	First  *Violation     `json:"first,omitempty"` // the first by offset
	// Missing are writes after Synced, before Newest, that the image does not have. They may have been in flight
	// when it was cut, or not have been synced.
	Missing []int64 `json:"missing,omitempty"`
}

// add counts a violation.
func (r *Report) add(v Violation) {
	if r.Counts == nil {
		r.Counts = map[Kind]int64{}
	}
	r.Counts[v.Kind]++
	if r.First == nil {
		r.First = &v
	}
}

// Violations is the number of all.
func (r *Report) Violations() (n int64) {
	for _, of := range r.Counts {
		n += of
	}
	return n
}

var violationOf = map[State]Kind{Torn: KindTorn, Foreign: KindForeign, Misplaced: KindMisplaced}

// Judge decides whether an image, all blocks of a stream in order, is a state that the volume can have had at one
// instant: with every write that was synced before the newest one in it began. Between two syncs any subset of the
// writes is allowed, in any order. Writes up to known are required in any case, as of a writer that continues; 0: none.
func Judge(s Stream, image []Block, known int64) *Report {
	r := &Report{Stream: s, Checked: int64(len(image))}
	for i, b := range image {
		if b.State == Written && s.At(b.Generation) == int64(i) {
			r.Newest = max(r.Newest, b.Generation)
		}
	}
	r.Synced = max(s.Floor(r.Newest), known)
	for i, b := range image {
		v := Violation{Offset: int64(i) * int64(s.BlockSize), Found: b.Generation, Want: s.Last(int64(i), r.Synced),
			Newest: r.Newest, Synced: r.Synced}
		switch kind, bad := violationOf[b.State]; {
		case bad:
			v.Kind = kind
			r.add(v)
		case b.Generation < v.Want:
			v.Kind = KindStale
			r.add(v)
		}
	}
	for g := r.Synced + 1; g < r.Newest && len(r.Missing) < MaxSyncEvery; g++ {
		if b := image[s.At(g)]; violationOf[b.State] == "" && b.Generation < g {
			r.Missing = append(r.Missing, g)
		}
	}
	return r
}
