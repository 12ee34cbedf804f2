package integrity

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Ack is an acknowledgement: writes up to Generation are durable at At, and no later one has begun.
type Ack struct {
	At         int64 // ns of any clock
	Generation int64
	Epoch      int // of the writer: how often it was started before
}

// Cut is when an image was made, on the clock of the acks: not before From, and not after To.
type Cut struct{ From, To int64 }

// Compare adds to a report what follows from the acknowledgements of the writer, which are in order of time: writes
// that were acknowledged before the cut and are missing, and writes that began after it and are there. It returns how
// old the newest write was at the end of the cut, at most, in ns; false: not known.
func (r *Report) Compare(acks []Ack, cut Cut) (age int64, known bool) {
	acked, after := -1, len(acks)
	for i, a := range acks {
		if a.At <= cut.From {
			acked = i
		}
		if a.At > cut.To {
			after = i
			break
		}
	}
	if acked >= 0 {
		r.addLost(acks[acked].Generation)
	}
	if after < len(acks) && (acked < 0 || acks[acked].Epoch == acks[after].Epoch) {
		if late := r.Newest - acks[after].Generation; late > 0 {
			r.addMany(KindLate, late, acks[after].Generation)
		}
	}
	return r.age(acks, cut)
}

// Expect counts all blocks as foreign if they are of another stream than the one with that ID.
func (r *Report) Expect(id uint64) {
	if r.Checked == 0 || r.Stream.ID == id {
		return
	}
	r.Counts, r.First, r.Missing, r.Newest = nil, nil, nil, 0
	r.addMany(KindForeign, r.Checked, 0)
}

// addLost counts the writes up to the acknowledged one that are missing and not counted as stale.
func (r *Report) addLost(acked int64) {
	lost := max(0, acked-r.Newest)
	for _, g := range r.Missing {
		if g <= acked {
			lost++
		}
	}
	if lost > 0 {
		r.addMany(KindLost, lost, acked)
	}
}

func (r *Report) addMany(kind Kind, n, want int64) {
	r.add(Violation{Kind: kind, Want: want, Newest: r.Newest})
	r.Counts[kind] = n
}

// age returns how long before the end of the cut the last acknowledgement was that came before the newest write.
func (r *Report) age(acks []Ack, cut Cut) (age int64, known bool) {
	for _, a := range acks {
		if a.At <= cut.To && a.Generation < r.Newest {
			age, known = cut.To-a.At, true
		}
	}
	return age, known
}

// AcksHead is the first line of a writer's acknowledgements.
func AcksHead(s Stream) string { return fmt.Sprintf("stream %016x\n", s.ID) }

// AckLine is one acknowledgement, with its time in Unix ns.
func AckLine(unixNanos, generation int64) string {
	return fmt.Sprintf("%d %d\n", unixNanos, generation)
}

// Acks is a file of acknowledgements.
type Acks struct {
	Stream uint64 // ID
	List   []Ack  // At in Unix ns
}

// ParseAcks reads a file of acknowledgements, which may end in the middle of a line.
func ParseAcks(r io.Reader) (a Acks, err error) {
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF): // a last part of a line may be cut anywhere
			return a, nil
		case err != nil:
			return a, fmt.Errorf("acknowledgements: line %d: %w", n, err)
		}
		words := strings.Fields(string(line))
		if len(words) != 2 {
			return a, fmt.Errorf("acknowledgements: invalid line %d: want two words", n)
		}
		if n == 1 {
			if a.Stream, err = strconv.ParseUint(words[1], 16, 64); err != nil || words[0] != "stream" {
				return a, errors.New("acknowledgements: invalid first line: want stream and its ID")
			}
			continue
		}
		at, atErr := strconv.ParseInt(words[0], 10, 64)
		g, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil || atErr != nil || at < 0 || g < 0 {
			return a, fmt.Errorf("acknowledgements: invalid line %d: want a time and a generation", n)
		}
		a.List = append(a.List, Ack{At: at, Generation: g})
	}
}
