package loadgen

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/op"
)

// tally counts the operations of one Key until they are taken. A hist.Counter records a value in less time than a
// Histogram, and its memory is used again.
type tally struct {
	counts                                         Cell // without histograms
	response, service, connect, first, drain, late hist.Counter
}

// add counts one operation that was due at an instant; of a closed loop, when it began.
func (t *tally) add(due op.Time, open bool, r *client.Result) error {
	c := &t.counts
	c.N++
	c.Bytes += r.Bytes
	c.Keys += int64(r.Keys)
	c.Attempts += int64(r.Attempts)
	if c.Detail == "" {
		c.Detail = detail(r.Detail)
	}
	if r.Started < due || r.Ended < r.Started || r.Connect < 0 || r.Drain < 0 {
		return fmt.Errorf("the clock went back: an operation due at %d began at %d and ended at %d", due, r.Started,
			r.Ended)
	}
	t.response.Record(int64(r.Ended - due))
	if open {
		t.service.Record(int64(r.Ended - r.Started))
		t.late.Record(int64(r.Started - due))
	}
	if r.Connected {
		c.Connections++
		t.connect.Record(r.Connect)
	}
	if r.First.Known() {
		t.first.Record(max(0, int64(r.First-r.Started)-r.Connect))
		t.drain.Record(r.Drain)
	}
	return nil
}

// moveTo adds the tally to a cell and empties it. dueAtStart: its operations are due when they start, so that their
// service is their response.
func (t *tally) moveTo(c *Cell, dueAtStart bool) error {
	service := &t.service
	if dueAtStart {
		service = &t.response
	}
	c.count(&t.counts)
	var err error
	for _, h := range []struct {
		from *hist.Counter
		to   *hist.Histogram
	}{{&t.response, c.Response}, {service, c.Service}, {&t.connect, c.Connect}, {&t.first, c.First},
		{&t.drain, c.Drain}, {&t.late, c.Late}} {
		err = first(err, h.from.AddTo(h.to))
	}
	for _, n := range []*hist.Counter{&t.response, &t.service, &t.connect, &t.first, &t.drain, &t.late} {
		n.Reset()
	}
	t.counts = Cell{}
	return err
}
