package local_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/test/awkwarddriver"
)

// load loads a Benchmark for the driver.
func (a *awkward) load(t *testing.T, text string) (*plan.Plan, func(owned.Identity) *local.Engine) {
	t.Helper()
	endpoints := map[string]string{awkwarddriver.Name: a.socket}
	e := func(own owned.Identity) *local.Engine {
		return local.New(local.Options{Endpoints: endpoints, AgentPath: filepath.Join(bin, "cnsbench-agent"), Identity: own,
			RetryStart: 10 * time.Millisecond, RemoveTimeout: 10 * time.Second})
	}
	p, problems := plan.Load(t.Context(), plan.Input{Files: []plan.File{{Name: "awkward.yaml", Data: []byte(text)}},
		Capabilities: e(owned.Identity{}).Capabilities(), Endpoints: endpoints})
	for _, problem := range problems {
		t.Error(problem)
	}
	if p == nil {
		t.FailNow()
	}
	return p, e
}

func (a *awkward) secrets(s *engine.Session, p *plan.Plan) { s.Secrets = p.Secrets }

// dead returns an engine that cleans up after a dead run.
func (a *awkward) dead(own owned.Identity, p *plan.Plan) *local.Engine {
	return local.New(local.Options{Endpoints: map[string]string{awkwarddriver.Name: a.socket}, Identity: own,
		RetryStart: 10 * time.Millisecond, RemoveTimeout: 10 * time.Second, Secrets: p.Secrets})
}
