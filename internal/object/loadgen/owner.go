package loadgen

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
)

// ownerChecks is how many containers are checked at the same time.
const ownerChecks = 16

// checkOwners makes sure, before a work that writes, that each container that it may write to has CNSBench's mark.
// Works that make or remove containers check it themselves. Known containers are not checked again.
func (c *Config) checkOwners(ctx context.Context, s client.Store, w *model.Work) error {
	if w.Kind == model.Init || w.Kind == model.Dispose {
		return nil
	}
	var names []string
	asked := map[string]bool{}
	for i := range w.Ops {
		o := &w.Ops[i]
		if !o.Type.Writes() || w.Kind == model.Normal && o.Weight == 0 {
			continue
		}
		ranges := []selector.Bucket{{Low: o.Containers.Low, High: o.Containers.High}}
		if w.Kind == model.Normal && o.Containers.Kind == selector.Histogram {
			ranges = o.Containers.Buckets // numbers between them are never drawn
		}
		for _, r := range ranges {
			for n := r.Low; n <= r.High; n++ {
				if name := string(numbered(nil, o.ContainerName, n)); !asked[name] &&
					!c.owned[place(s.Describe(), name)] {
					asked[name] = true
					names = append(names, name)
				}
			}
		}
	}
	found := make([]client.Result, len(names))
	if err := look(ctx, s, names, found); err != nil {
		return err
	}
	var wrong []string
	for i, r := range found {
		switch {
		case r.OK():
			c.owned[place(s.Describe(), names[i])] = true
			delete(c.absent, place(s.Describe(), names[i]))
		case r.Absent() && w.Kind == model.Cleanup: // there is nothing to delete
			c.absent[place(s.Describe(), names[i])] = true
		case r.Absent():
			wrong = append(wrong, names[i]+" does not exist: a work of type init makes it")
		case r.Code == client.NotOurs:
			wrong = append(wrong, names[i]+" does not carry CNSBench's mark, so nothing is written to it or "+
				"deleted from it")
		default:
			wrong = append(wrong, fmt.Sprintf("%s cannot be looked at: %s %s", names[i], r.Label(), r.Detail))
		}
	}
	if n := len(wrong); n > 5 {
		wrong = append(wrong[:5], fmt.Sprintf("and %d more", n-5))
	}
	if len(wrong) > 0 {
		return fmt.Errorf("work %s may not write to its containers: %s", w.Name, strings.Join(wrong, "; "))
	}
	return nil
}

// place names a container of a store.
func place(store, container string) string { return store + "/" + container }

// look checks the mark of each container.
func look(ctx context.Context, s client.Store, names []string, found []client.Result) error {
	next := make(chan int)
	var wait sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range min(ownerChecks, len(names)) {
		worker, err := s.Client()
		if err != nil {
			mu.Lock()
			failed = errors.Join(failed, err)
			mu.Unlock()
			break
		}
		stop := context.AfterFunc(ctx, worker.Abort)
		wait.Go(func() {
			defer worker.Close()
			defer stop()
			for i := range next {
				worker.Do(ctx, &client.Request{Verb: client.CheckOwner, Container: []byte(names[i])}, &found[i])
			}
		})
	}
	if failed == nil {
		for i := range names {
			next <- i
		}
	}
	close(next)
	wait.Wait()
	return failed
}
