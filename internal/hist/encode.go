package hist

import (
	"encoding/json"
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// encoded is the JSON form. HDR is the standard HdrHistogram "V2 compressed" base64 text.
type encoded struct {
	N         int64  `json:"n"`
	Sum       int64  `json:"sum"`
	Min       int64  `json:"min"`
	Max       int64  `json:"max"`
	Saturated int64  `json:"saturated,omitempty"`
	HDR       string `json:"hdr,omitempty"`
}

// MarshalJSON encodes n, sum, min and max in ns, and the buckets.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	e := encoded{N: h.n, Sum: h.sum, Min: h.min, Max: h.max, Saturated: h.saturated}
	if h.n > 0 {
		b, err := h.buckets.EncodeV2()
		if err != nil {
			return nil, fmt.Errorf("hist: encode: %w", err)
		}
		e.HDR = string(b)
	}
	return json.Marshal(e)
}

// UnmarshalJSON reads the output of MarshalJSON. Inconsistent values are an error.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var e encoded
	if err := json.Unmarshal(b, &e); err != nil {
		return fmt.Errorf("hist: decode: %w", err)
	}
	d, err := e.histogram()
	if err != nil {
		return err
	}
	*h = *d
	return nil
}

func (e encoded) histogram() (*Histogram, error) {
	if e.N == 0 {
		return New(), nil
	}
	if e.N < 0 || e.Min < 0 || e.Max < e.Min || e.Saturated < 0 || e.Saturated > e.N {
		return nil, fmt.Errorf("hist: decode: inconsistent n %d, min %d, max %d, saturated %d", e.N, e.Min, e.Max,
			e.Saturated)
	}
	p, err := hdrhistogram.DecodePacked([]byte(e.HDR))
	if err != nil {
		return nil, fmt.Errorf("hist: decode buckets: %w", err)
	}
	if p.SignificantFigures() != Digits || p.LowestTrackableValue() != 1 || p.HighestTrackableValue() != Highest {
		return nil, fmt.Errorf("hist: decode: buckets are of %d digits from %d to %d, want %d from 1 to %d",
			p.SignificantFigures(), p.LowestTrackableValue(), p.HighestTrackableValue(), Digits, Highest)
	}
	if p.TotalCount() != e.N {
		return nil, fmt.Errorf("hist: decode: buckets hold %d values, n says %d", p.TotalCount(), e.N)
	}
	return &Histogram{buckets: p, n: e.N, sum: e.Sum, min: e.Min, max: e.Max, saturated: e.Saturated}, nil
}
