package seek

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/cnsbench/cnsbench/internal/objectstore/load"
	"github.com/cnsbench/cnsbench/internal/objectstore/model"
)

// Ceilings measures, before a stage with works of type normal, what this client
// can do of it against a null server, and tells the stage's result.
type Ceilings struct {
	// Server starts a null server of objects of so many bytes, in a process of
	// its own, so that what it uses is not counted as the client's.
	Server func(ctx context.Context, size int64) (address string, stop func() error, err error)
	Size   int64 // of the objects that are read
	// Window is how long is measured, after WarmUp.
	Window, WarmUp time.Duration
	Tell           func(line string)
	Ended          func(*load.StageResult) // is told of each measurement

	measured map[string]float64 // by what is done
}

// Around carries stages out by inner, and before those with normal works, unless
// the same was measured already, their ceiling.
func (c *Ceilings) Around(inner Carry) Carry {
	return func(ctx, hard context.Context, s *model.Stage) *load.StageResult {
		ceiling, err := c.of(ctx, hard, s, inner)
		if err != nil && c.Tell != nil {
			c.Tell(fmt.Sprintf("the ceiling of stage %s is not known: %v", s.Name, err))
		}
		r := inner(ctx, hard, s)
		r.Ceiling = ceiling
		return r
	}
}

func (c *Ceilings) of(ctx, hard context.Context, s *model.Stage, inner Carry) (float64, error) {
	stage, ok := c.stage(s)
	if !ok {
		return 0, nil
	}
	what, err := json.Marshal(stage)
	if err != nil {
		return 0, err
	}
	if v, known := c.measured[string(what)]; known {
		return v, nil
	}
	address, stop, err := c.Server(ctx, c.Size)
	if err != nil {
		return 0, err
	}
	for i := range stage.Works {
		w := &stage.Works[i]
		if w.Name == "" {
			w.Name = fmt.Sprintf("work%d", i+1)
		}
		w.Store = instead(&w.Store, address, c.Size)
	}
	stage.Name = s.Name + ".ceiling"
	r := inner(ctx, hard, stage)
	c.Ended(r)
	if err := stop(); err != nil {
		return 0, fmt.Errorf("the null server: %w", err)
	}
	perSecond := r.PerSecond()
	if r.Err != nil || perSecond == 0 {
		return 0, errors.Join(r.Err, errors.New("no operation succeeded against a null server"))
	}
	if c.measured == nil {
		c.measured = map[string]float64{}
	}
	c.measured[string(what)] = perSecond
	if c.Tell != nil {
		c.Tell(fmt.Sprintf("%s: this client does %s operations a second at most", stage.Name, figure(perSecond)))
	}
	return perSecond, nil
}

// stage is s as closed loops that check nothing of the store, without names and
// what differs between steps; false if there is nothing to measure.
func (c *Ceilings) stage(s *model.Stage) (*model.Stage, bool) {
	stage := &model.Stage{}
	for _, w := range s.Works {
		if w.Kind != model.Normal {
			continue
		}
		w.Name, w.Line, w.Rate, w.RateText = "", 0, nil, ""
		w.TotalOps, w.TotalBytes, w.RampDown, w.MaxFailures = 0, 0, 0, 1_000_000
		w.RampUp, w.Runtime = c.WarmUp, c.Window
		w.Ops = append([]model.Op(nil), w.Ops...)
		for i := range w.Ops {
			o := &w.Ops[i]
			if o.Checks, o.Line = nil, 0; o.Type == model.Read {
				o.Zero = false // a null server's are not
			}
		}
		stage.Works = append(stage.Works, w)
	}
	return stage, len(stage.Works) > 0
}

// instead is a store like s on a null server.
func instead(s *model.Store, address string, size int64) model.Store {
	n := model.Store{Kind: s.Kind, Settings: maps.Clone(s.Settings)}
	if n.Settings == nil {
		n.Settings = map[string]string{}
	}
	for _, own := range []string{"cafile", "no_verify_ssl", "credentials", "storage_url", "token", "root"} {
		delete(n.Settings, own)
	}
	switch s.Kind {
	case "s3":
		n.Settings["endpoint"], n.Settings["path_style_access"] = address, "true"
		n.Secrets = model.Secrets{"accesskey": "ceiling", "secretkey": "ceiling"}
	case "swift":
		n.AuthKind, n.Auth = "tempauth", map[string]string{"auth_url": address + "/auth/v1.0", "username": "ceiling"}
		n.Secrets = model.Secrets{"password": "ceiling"}
	default: // no network: in this process, nothing is kept
		n.Kind, n.Settings = "null", map[string]string{"size": fmt.Sprintf("%dB", size)}
	}
	return n
}
