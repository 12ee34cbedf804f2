package load

import (
	"encoding/json"
	"fmt"

	"github.com/cnsbench/cnsbench/internal/hist"
)

// encoded is a cell as it goes over a wire. Histograms are exact in it.
type encoded struct {
	Key  Key
	Cell *Cell
}

// MarshalJSON writes all cells.
func (c Cells) MarshalJSON() ([]byte, error) {
	list := make([]encoded, 0, len(c))
	for k, cell := range c {
		list = append(list, encoded{k, cell})
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads what MarshalJSON wrote. It refuses what cannot be: keys
// that occur twice and negative counts.
func (c *Cells) UnmarshalJSON(b []byte) error {
	var list []encoded
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("cells: %w", err)
	}
	*c = make(Cells, len(list))
	for _, e := range list {
		if e.Cell == nil || (*c)[e.Key] != nil {
			return fmt.Errorf("cells: %v is empty or occurs twice", e.Key)
		}
		if x := e.Cell; min(x.N, x.Bytes, x.Keys, x.Attempts, x.Connections, int64(e.Key.Op)) < 0 {
			return fmt.Errorf("cells: %v counts what is negative", e.Key)
		}
		for _, h := range e.Cell.histograms() {
			if *h == nil {
				*h = hist.New()
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
