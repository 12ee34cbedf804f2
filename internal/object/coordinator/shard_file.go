package coordinator

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
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
}

// ShardStage is what a shard did in a stage.
type ShardStage struct {
	loadgen.StageResult
	Seconds []ShardSecond
	// Over: it has ended, or was skipped.
	Over bool
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
		if err := p.Stages[i].sum(); err != nil {
			return nil, err
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
		s.Began = r.Began.At
		if r.Began.Barrier {
			p.Barrier = r.Began.At
		}
		if r.Began.Works != nil {
			p.Workload.Stages[r.Began.Stage].Works = r.Began.Works
			if err := restore(&p.Workload); err != nil {
				return err
			}
		}
		s.works(&p.Workload.Stages[r.Began.Stage])
		p.Last = max(p.Last, s.Began)
	case r.Second != nil:
		return p.second(r.Second)
	case r.Ended != nil:
		return p.ended(r.Ended)
	case r.Done != nil:
		p.Torn, p.Err, p.Interrupted = false, r.Done.Err, r.Done.Interrupted
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

// works begins those that are measured.
func (s *ShardStage) works(m *model.Stage) {
	s.Works = nil
	for i := range m.Works {
		w := &m.Works[i]
		if w.Kind == model.Delay {
			continue
		}
		from, to, _ := w.Windows()
		r := loadgen.WorkResult{Work: w, Began: s.Began, From: s.Began + op.Time(from), To: op.Never, Ended: op.Never,
			Cells: loadgen.Cells{}}
		if to > 0 {
			r.To = s.Began + op.Time(to)
		}
		s.Works = append(s.Works, r)
	}
}

func (s *ShardStage) work(name string) (int, error) {
	i := slices.IndexFunc(s.Works, func(w loadgen.WorkResult) bool { return w.Work.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("stage %q has no work %q that has begun", s.Name, name)
	}
	return i, nil
}

func (p *Shard) second(x *second) error {
	s, err := p.stage(x.Stage)
	if err != nil {
		return err
	}
	i, err := s.work(x.Work)
	if err != nil {
		return err
	}
	for k := range x.Cells {
		if k.Op >= len(s.Works[i].Work.Ops) {
			return fmt.Errorf("work %q has no operation %d", x.Work, k.Op)
		}
	}
	s.Seconds = append(s.Seconds, ShardSecond{Work: i, From: x.From, To: x.To, Cells: x.Cells, Usage: x.Usage})
	p.Last = max(p.Last, x.To)
	return nil
}

func (p *Shard) ended(x *ended) error {
	s, err := p.stage(x.Stage)
	if err != nil {
		return err
	}
	s.Ended, s.Skipped, s.Usage, s.Over = x.At, x.Skipped, x.Usage, true
	if x.Err != "" {
		s.Err = errors.New(x.Err)
	}
	p.Last = max(p.Last, x.At)
	for _, w := range x.Works {
		i, err := s.work(w.Work)
		if err != nil {
			return err
		}
		r := &s.Works[i]
		r.Began, r.From, r.To, r.Ended = w.Began, w.From, w.To, w.Ended
		if w.Err != "" {
			r.Err = errors.New(w.Err)
		}
	}
	return nil
}

// sum adds the seconds up, exactly. The measured window of a lost work ends with its last known second.
func (s *ShardStage) sum() error {
	for _, x := range s.Seconds {
		if err := s.Works[x.Work].Cells.Merge(x.Cells); err != nil {
			return fmt.Errorf("work %q: %w", s.Works[x.Work].Work.Name, err)
		}
	}
	if s.Over {
		return nil
	}
	for i := range s.Works {
		w, last := &s.Works[i], s.Began
		for _, x := range s.Seconds {
			if x.Work == i {
				last = max(last, x.To)
			}
		}
		if w.Ended = last; !w.To.Known() || w.To > last {
			w.To = max(w.From, last)
		}
	}
	return nil
}
