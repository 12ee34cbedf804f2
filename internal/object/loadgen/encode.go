package loadgen

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cnsbench/cnsbench/internal/hist"
)

// encoded is a cell in JSON, with its histograms in a list.
type encoded struct {
	Key  Key
	Cell *Cell
	Hist [6]*flat
}

// flat is a histogram, exactly, in a form that a thousand hosts can send each
// second: the standard one is compressed, which costs ten times as much.
type flat struct {
	Sum       int64 `json:"s"`
	Min       int64 `json:"l"`
	Max       int64 `json:"h"`
	Saturated int64 `json:"x,omitempty"`
	// Counts are pairs of uvarints for each bucket in use: how much higher than
	// the one before it begins, and its count.
	Counts []byte `json:"c"`
}

// MarshalJSON writes all cells.
func (c Cells) MarshalJSON() ([]byte, error) {
	list := make([]encoded, 0, len(c))
	for k, cell := range c {
		bare := *cell
		e := encoded{Key: k, Cell: &bare}
		for i, h := range bare.histograms() {
			if (*h).N() > 0 {
				e.Hist[i] = flatten(*h)
			}
			*h = nil
		}
		list = append(list, e)
	}
	return json.Marshal(list)
}

// UnmarshalJSON is the inverse of MarshalJSON. It refuses impossible counts.
func (c *Cells) UnmarshalJSON(b []byte) error {
	var list []encoded
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("cells: %w", err)
	}
	*c = make(Cells, len(list))
	for _, e := range list {
		if e.Cell == nil || (*c)[e.Key] != nil {
			return fmt.Errorf("invalid cells: %v is empty or occurs twice", e.Key)
		}
		if x := e.Cell; min(x.N, x.Bytes, x.Keys, x.Attempts, x.Connections, int64(e.Key.Op)) < 0 {
			return fmt.Errorf("invalid cells: negative count of %v", e.Key)
		}
		for i, h := range e.Cell.histograms() {
			var err error
			if *h, err = e.Hist[i].histogram(); err != nil {
				return fmt.Errorf("cells: %v: %w", e.Key, err)
			}
		}
		(*c)[e.Key] = e.Cell
	}
	return nil
}

// histograms are all that a cell has.
func (c *Cell) histograms() [6]**hist.Histogram {
	return [6]**hist.Histogram{&c.Response, &c.Service, &c.Connect, &c.First, &c.Drain, &c.Late}
}

func flatten(h *hist.Histogram) *flat {
	f := &flat{Sum: h.Sum(), Min: h.Min(), Max: h.Max(), Saturated: h.Saturated()}
	before := int64(0)
	h.Buckets(func(b hist.Bucket) bool {
		f.Counts = binary.AppendUvarint(binary.AppendUvarint(f.Counts, uint64(b.Low-before)), uint64(b.Count))
		before = b.Low
		return true
	})
	return f
}

var errHistogram = errors.New("invalid counts of a histogram")

// histogram is the inverse of flattening; nil gives an empty one.
func (f *flat) histogram() (*hist.Histogram, error) {
	h := hist.New()
	if f == nil {
		return h, nil
	}
	low := int64(0)
	for b := f.Counts; len(b) > 0; {
		step, k := binary.Uvarint(b)
		count, l := binary.Uvarint(b[max(0, k):])
		if k <= 0 || l <= 0 || step > uint64(hist.Highest-low) || count > 1<<62 {
			return nil, errHistogram
		}
		b = b[k+l:]
		low += int64(step)
		n := int64(count)
		if len(b) == 0 {
			n -= f.Saturated // they are in the last bucket
		}
		if err := h.RecordN(low, n); err != nil {
			return nil, err
		}
	}
	if err := h.RecordN(hist.Highest+1, f.Saturated); err != nil {
		return nil, err
	}
	return h, h.SetExact(f.Sum, f.Min, f.Max)
}
