package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/message"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/cosbench"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// session is a host's with one controller.
type session struct {
	*host
	conn   *message.Peer
	runner *loadgen.Runner
	begin  chan op.Time // of the stage in progress
	rounds sync.WaitGroup

	mu        sync.Mutex
	busy      bool
	stopRound func(atOnce bool)
}

// listen executes the controller's messages until it disconnects.
func (s *session) listen(ctx context.Context) error {
	for {
		var l frame
		err := s.conn.Read(&l)
		if err != nil {
			return err
		}
		switch {
		case l.Ping != nil:
			err = s.conn.SendPong(&l.Time)
		case l.Setup != nil && s.runner == nil:
			s.runner = loadgen.NewRunner(loadgen.Config{Open: s.Open(l.Setup.OwnCredentials), Clock: s.Clock,
				Sleep: s.Sleep,
				Seed:  l.Setup.Seed, Grace: l.Setup.Grace, Observer: reporter{s}, Begin: s.atOnce})
			s.Say("run " + l.Setup.Run)
		case l.Order != nil && s.runner != nil:
			err = s.round(ctx, l.Order)
		case l.Start != nil:
			select {
			case s.begin <- l.Start.At:
			default:
				err = errors.New("start without an order")
			}
		case l.Stop != nil:
			s.stopped(l.Stop.AtOnce)
		default:
			err = errors.New("unexpected message")
		}
		if err != nil {
			return err
		}
	}
}

func (s *session) stopped(atOnce bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopRound(atOnce)
}

// round begins to carry a share of a stage out.
func (s *session) round(ctx context.Context, o *order) error {
	if err := o.complete(); err != nil {
		return err
	}
	hard, kill := context.WithCancel(ctx)
	soft, end := context.WithCancel(hard)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		kill()
		end()
		return errors.New("order during a stage")
	}
	s.busy, s.begin = true, make(chan op.Time, 1)
	s.stopRound = func(atOnce bool) {
		if end(); atOnce {
			kill()
		}
	}
	s.Say(fmt.Sprintf("stage %s: %d works", o.Stage.Name, len(o.Stage.Works)))
	s.rounds.Go(func() {
		defer kill()
		defer end()
		result := s.execute(soft, hard, o)
		s.mu.Lock()
		s.busy, s.stopRound = false, func(bool) {}
		s.mu.Unlock()
		if ctx.Err() == nil { // else it was cut short and must not count as ended
			_ = s.conn.Write(&frame{Ended: endedOf(0, result)}) // the reader learns of it
		}
	})
	return nil
}

// execute runs an order, on the stores or on a null server.
func (s *session) execute(soft, hard context.Context, o *order) *loadgen.StageResult {
	if s.Enough != nil {
		if err := s.Enough(&o.Stage); err != nil {
			return &loadgen.StageResult{Err: err, Ended: s.Clock.Now()}
		}
	}
	if o.NullSize == 0 {
		return s.runner.Stage(soft, hard, &o.Stage)
	}
	stop, err := s.Instead(hard, o.Stage.Works, o.NullSize)
	if err != nil {
		return &loadgen.StageResult{Err: fmt.Errorf("a null server: %w", err), Ended: s.Clock.Now()}
	}
	r := s.runner.Stage(soft, hard, &o.Stage)
	if err := stop(); err != nil {
		r.Err = errors.Join(r.Err, fmt.Errorf("the null server: %w", err))
	}
	return r
}

// complete restores what the order's stage has lost in JSON.
func (o *order) complete() error {
	if len(o.Secrets) != len(o.Stage.Works) {
		return fmt.Errorf("invalid order: credentials for %d of %d works", len(o.Secrets), len(o.Stage.Works))
	}
	for i := range o.Stage.Works {
		o.Stage.Works[i].Store.Secrets = o.Secrets[i]
	}
	return cosbench.Restore(o.Stage.Works)
}

// atOnce reports that the host is ready, and waits for the common start. Windows and due times count from it, also on
// a late host, whose lateness shows in its responses.
func (s *session) atOnce(ctx context.Context) (op.Time, error) {
	if err := s.conn.Write(&frame{Ready: &ready{}}); err != nil {
		return op.Never, err
	}
	var at op.Time
	select {
	case <-ctx.Done():
		return op.Never, errors.New("stopped before it began")
	case at = <-s.begin:
		if !s.Sleep(ctx, s.Clock.At(at)) {
			return op.Never, errors.New("stopped before it began")
		}
	}
	return at, s.conn.Write(&frame{Began: &began{At: s.Clock.Now()}})
}

// reporter is the loadgen.Observer that sends each second to the controller.
type reporter struct{ *session }

func (reporter) StageBegan(*model.Stage, op.Time) {}

func (t reporter) Second(_ string, w *model.Work, from, to op.Time, cells loadgen.Cells) {
	_ = t.conn.Write(&frame{Second: secondOf(0, w, from, to, cells)}) // the reader notices an error
}

// ServeOptions are what a host needs.
type ServeOptions struct {
	Token   string
	Version string        // of the program: that of the controller must be the same
	Silence time.Duration // 0: Silence
	Clock   op.Clock
	// Open makes what opens stores. Without own they have the credentials that
	// the controller sent, and no others.
	Open func(own bool) func(*model.Store) (client.Store, error)
	// Enough returns an error if this machine cannot run a stage, such as for too few open files; nil: none is checked.
	Enough func(s *model.Stage) error
	// Instead starts a null server on this machine, with objects of that many bytes, and redirects the works to it;
	// stop ends it.
	Instead func(ctx context.Context, works []model.Work, size int64) (stop func() error, err error)
	// Sleep waits for an instant; false if ctx ended first.
	Sleep func(ctx context.Context, until time.Time) bool
	// About describes this machine to controllers.
	About json.RawMessage
	Say   func(line string)
}

// host serves one controller at a time.
type host struct {
	ServeOptions

	mu   sync.Mutex
	with string // address of the controller that it serves; "": none
}
