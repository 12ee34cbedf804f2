package coordinator

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/op"
)

// maxRow bounds a line: a second of many operations in many outcomes.
const maxRow = 64 << 20

// rowWriter writes rows; after an error it writes nothing more.
type rowWriter struct {
	to  io.Writer
	err error
}

func (w *rowWriter) row(r row) {
	if w.err != nil {
		return
	}
	line, err := json.Marshal(r)
	if err == nil {
		_, err = w.to.Write(append(line, '\n'))
	}
	w.err = err
}

// Shard is the content of a shard's file.
type Shard struct {
	ShardHead
	// Barrier is when the first stage that is measured began, for which the run's
	// barrier had opened; Never if it did not.
	Barrier op.Time
	Stages  []ShardStage
	// Last is the last instant in the file. Torn: the file ends without its last line, because the shard was
	// lost.
	Last op.Time
	Torn bool
	// Err is why the shard failed; empty: it did not.
	Err         string
	Interrupted bool
	// Unlogged is the number of operations that are missing in the log of operations, and LogErr why, if it failed.
	Unlogged int64
	LogErr   string
}

// ShardStage is what a shard did in a stage.
type ShardStage struct {
	share
	Seconds []ShardSecond
}

// ShardSecond is what ended in about a second of a work, the i-th of its stage.
type ShardSecond struct {
	Work     int
	From, To op.Time
	Cells    loadgen.Cells
	Usage    loadgen.Usage // of the process, since it began
}

// ReadShard reads a shard's file. It leaves out an incomplete last line; an error means that the file is not
// a shard's, or is damaged.
func ReadShard(from io.Reader) (*Shard, error) {
	lines := bufio.NewReader(from)
	p := &Shard{Barrier: op.Never, Torn: true}
	for n := 1; ; n++ {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			break // the rest is an incomplete line
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		var r row
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("line %d: parse row: %w", n, err)
		}
		if err := p.take(n, &r); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if p.Format == 0 {
		return nil, errors.New("the file is empty: the program ended before its first stage")
	}
	for i := range p.Stages {
		if s := &p.Stages[i]; !s.Over {
			s.cut()
		}
	}
	return p, nil
}

// readLine reads one complete line; io.EOF: there is none.
func readLine(from *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := from.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case len(line) > maxRow:
			return nil, fmt.Errorf("it is longer than %d bytes", maxRow)
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (p *Shard) take(n int, r *row) error {
	if r.Head != nil {
		return p.begin(n, r.Head)
	}
	if p.Format == 0 {
		return errors.New("row before the head")
	}
	switch {
	case r.Began != nil:
		s, err := p.stage(r.Began.Stage)
		if err != nil {
			return err
		}
		if r.Began.Barrier {
			p.Barrier = r.Began.At
		}
		if r.Began.Works != nil {
			p.Workload.Stages[r.Began.Stage].Works = r.Began.Works
			if err := restore(&p.Workload); err != nil {
				return err
			}
		}
		s.begin(&p.Workload.Stages[r.Began.Stage], r.Began.At)
		p.Last = max(p.Last, s.Began)
	case r.Second != nil:
		return p.second(r.Second)
	case r.Ended != nil:
		s, err := p.stage(r.Ended.Stage)
		if err != nil {
			return err
		}
		p.Last = max(p.Last, r.Ended.At)
		return s.end(r.Ended)
	case r.Done != nil:
		p.Torn, p.Err, p.Interrupted = false, r.Done.Err, r.Done.Interrupted
		p.Unlogged, p.LogErr = r.Done.Unlogged, r.Done.LogErr
	}
	return nil
}

func (p *Shard) begin(n int, h *ShardHead) error {
	switch {
	case n > 1:
		return errors.New("second head")
	case h.Format > shardFormat:
		return fmt.Errorf("unsupported format %d: this program reads up to %d", h.Format, shardFormat)
	case h.Format < 1 || h.Parts < 1 || h.Index < 0 || h.Index >= h.Parts:
		return fmt.Errorf("invalid head: shard %d of %d in format %d", h.Index, h.Parts, h.Format)
	}
	p.ShardHead = *h
	p.Stages = make([]ShardStage, len(h.Workload.Stages))
	for i := range p.Stages {
		p.Stages[i].Name, p.Stages[i].Began, p.Stages[i].Ended = h.Workload.Stages[i].Name, op.Never, op.Never
	}
	return restore(&p.Workload)
}

func (p *Shard) stage(i int) (*ShardStage, error) {
	if i < 0 || i >= len(p.Stages) {
		return nil, fmt.Errorf("invalid stage %d", i)
	}
	return &p.Stages[i], nil
}

func (p *Shard) second(x *second) error {
	s, err := p.stage(x.Stage)
	if err == nil {
		err = s.second(x)
	}
	if err != nil {
		return err
	}
	i, _ := s.work(x.Work) // it is there
	s.Seconds = append(s.Seconds, ShardSecond{Work: i, From: x.From, To: x.To, Cells: x.Cells, Usage: x.Usage})
	p.Last = max(p.Last, x.To)
	return nil
}
