package model_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

func work(name string, workers int, change func(*model.Work)) model.Work {
	w := model.Work{Name: name, Kind: model.Normal, Workers: workers, Ops: []model.Op{{
		Type: model.Read, Name: "read", Weight: 100, Containers: selector.Spec{Kind: selector.Range, Low: 1, High: 7},
		Objects: selector.Spec{Kind: selector.Range, Low: 1, High: 1000},
	}}}
	if change != nil {
		change(&w)
	}
	return w
}

func shares(t *testing.T, w *model.Workload, n int) []*model.Workload {
	t.Helper()
	var all []*model.Workload
	for i := range n {
		s, err := w.Share(i, make([]string, n))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// TestSharesAreTheWholeWork checks that the shares of all hosts together have the workers, operations and
// bytes of the whole work.
func TestSharesAreTheWholeWork(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 2, 3, 7, 16, 1000} {
		for _, hosts := range []int{1, 2, 3, 5, 16, 1000} {
			for _, total := range []int64{0, 1, 5, 1001, 1 << 60} {
				t.Run(fmt.Sprintf("%d workers on %d hosts, %d ops", workers, hosts, total), func(t *testing.T) {
					t.Parallel()
					limit := func(w *model.Work) { w.TotalOps, w.TotalBytes = total, total }
					w := &model.Workload{Stages: []model.Stage{{Name: "s",
						Works: []model.Work{work("other", 3, nil), work("main", workers, limit)}}}}
					seen, falls := make([]int, workers), make([]int, 3*workers)
					var ops, bytes int64
					least, most := workers, 0
					for _, s := range shares(t, w, hosts) {
						n := 0
						for _, x := range s.Stages[0].Works {
							if x.Name != "main" {
								continue
							}
							n = x.Workers
							ops, bytes = ops+x.TotalOps, bytes+x.TotalBytes
							for i := range x.Workers {
								seen[x.FirstWorker+i]++
							}
							turns := x.Turns()
							for k := range falls {
								if turns.Fall(int64(k)) {
									falls[k]++
								}
							}
							if x.AllWorkers() != workers {
								t.Errorf("a share is of %d workers, not of %d", x.AllWorkers(), workers)
							}
						}
						least, most = min(least, n), max(most, n)
					}
					if ops != total || bytes != total {
						t.Errorf("the shares have %d operations and %d bytes, not %d", ops, bytes, total)
					}
					if most-least > 1 && total != 1 && total != 5 {
						t.Errorf("a host has %d workers and another %d", most, least)
					}
					// If there are fewer operations than workers, workers without any are left out.
					for i, n := range seen {
						if want := total == 0 || int64(i) < total; n > 1 || want && n != 1 {
							t.Errorf("worker %d is on %d hosts", i, n)
						}
					}
					for k, n := range falls {
						if want := total == 0 || int64(workers) <= total; n > 1 || want && n != 1 {
							t.Errorf("the due operation %d falls to %d hosts", k, n)
						}
					}
				})
			}
		}
	}
}

// TestSharesOfARateThatACountEnds checks that all hosts together execute the first due operations of a rate
// that ends by a number of operations, at the same times as one host would, however few they are.
func TestSharesOfARateThatACountEnds(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 3, 7, 1000} {
		for _, hosts := range []int{1, 2, 3, 16} {
			for _, total := range []int64{1, 5, 100, 999, 1001} {
				w := &model.Workload{Stages: []model.Stage{{Name: "s",
					Works: []model.Work{work("main", workers, func(w *model.Work) {
						w.Rate, w.TotalOps = schedule.Constant{Rate: 1}, total
					})}}}}
				done := map[int64]int{}
				for _, s := range shares(t, w, hosts) {
					for _, x := range s.Stages[0].Works {
						turns := x.Turns()
						for k, n := int64(0), int64(0); n < x.TotalOps; k++ {
							if turns.Fall(k) {
								n++
								done[k]++
							}
						}
					}
				}
				for k := range total {
					if done[k] != 1 || int64(len(done)) != total {
						t.Fatalf("%d workers on %d hosts, %d operations: that of number %d is done %d times, and "+
							"%d are done", workers, hosts, total, k, done[k], len(done))
					}
				}
			}
		}
	}
}

// TestTurnsAreEven checks that the operations of a rate on each host are evenly spaced and not in bursts.
func TestTurnsAreEven(t *testing.T) {
	t.Parallel()
	for _, hosts := range []int{2, 3, 7} {
		for _, workers := range []int{hosts, 10 * hosts, 1000*hosts + 1} {
			w := &model.Workload{Stages: []model.Stage{{Name: "s", Works: []model.Work{work("main", workers, nil)}}}}
			for i, s := range shares(t, w, hosts) {
				turns, last, n := s.Stages[0].Works[0].Turns(), -1, 0
				for k := range 3 * workers {
					if !turns.Fall(int64(k)) {
						continue
					}
					if n++; k-last > 3*hosts {
						t.Errorf("%d workers on %d hosts: host %d has nothing from operation %d to %d", workers,
							hosts, i, last, k)
					}
					last = k
				}
				if n != 3*s.Stages[0].Works[0].Workers {
					t.Errorf("%d workers on %d hosts: host %d has %d operations in three rounds", workers, hosts, i, n)
				}
			}
		}
	}
}

// TestSharesOfDivision checks that the workers of all shares together have the items of a single process,
// each once.
func TestSharesOfDivision(t *testing.T) {
	t.Parallel()
	prepare := work("prepare", 5, func(w *model.Work) {
		w.Kind = model.Prepare
		w.Ops[0].Type, w.Ops[0].Division = model.Write, model.ByObject
	})
	w := &model.Workload{Stages: []model.Stage{{Name: "s", Works: []model.Work{prepare}}}}
	objects := make([]int, 1000)
	for _, s := range shares(t, w, 3) {
		for _, x := range s.Stages[0].Works {
			for i := range x.Workers {
				_, part := x.Ops[0].Part(x.FirstWorker+i, x.AllWorkers())
				from, n := part.Slice(1000)
				for k := range n {
					objects[from+k]++
				}
			}
		}
	}
	for i, n := range objects {
		if n != 1 {
			t.Fatalf("object %d is written by %d workers", i+1, n)
		}
	}
}

// TestSharesByTurns checks which host gets the remaining workers of each work, and works that name a driver.
func TestSharesByTurns(t *testing.T) {
	t.Parallel()
	delay := model.Work{Name: "delay", Kind: model.Delay}
	w := &model.Workload{Name: "w", Stages: []model.Stage{
		{Name: "one", Works: []model.Work{work("a", 1, nil), work("b", 1, nil), work("c", 3, nil), work("d", 4, nil)}},
		{Name: "wait", Works: []model.Work{delay}},
		{Name: "pinned", Works: []model.Work{work("e", 5, func(w *model.Work) { w.Driver = "second" })}},
	}}
	var got []string
	for i := range 3 {
		s, err := w.Share(i, []string{"first", "second", "third"})
		if err != nil {
			t.Fatal(err)
		}
		for _, stage := range s.Stages {
			line := fmt.Sprintf("%d %s:", i, stage.Name)
			for _, x := range stage.Works {
				line += fmt.Sprintf(" %s %d+%d/%d", x.Name, x.FirstWorker, x.Workers, x.AllWorkers())
			}
			got = append(got, line)
		}
	}
	want := []string{
		"0 one: a 0+1/1 c 1+1/3 d 2+1/4", "0 wait: delay 0+0/0", "0 pinned:",
		"1 one: b 0+1/1 c 2+1/3 d 3+1/4", "1 wait: delay 0+0/0", "1 pinned: e 0+5/5",
		"2 one: c 0+1/3 d 0+2/4", "2 wait: delay 0+0/0", "2 pinned:",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	if len(w.Stages[0].Works) != 4 || w.Stages[0].Works[3].Of != 0 {
		t.Error("the workload itself was changed")
	}
}

// TestSharesThatCannotBe checks that invalid hosts are an error.
func TestSharesThatCannotBe(t *testing.T) {
	t.Parallel()
	w := &model.Workload{Stages: []model.Stage{{Name: "s",
		Works: []model.Work{work("main", 1, func(w *model.Work) { w.Driver = "gone" })}}}}
	for _, i := range []int{-1, 0, 2} {
		if _, err := w.Share(i, []string{"a", "b"}); err == nil {
			t.Errorf("host %d has a share", i)
		}
	}
}

// TestStartsOfShares checks the start of each share in a sequential selector.
func TestStartsOfShares(t *testing.T) {
	t.Parallel()
	w := &model.Workload{Stages: []model.Stage{{Name: "s", Works: []model.Work{work("main", 4, nil)}}}}
	var got []int64
	for _, s := range shares(t, w, 2) {
		x := s.Stages[0].Works[0]
		got = append(got, x.Start(x.Ops[0].Containers), x.Start(x.Ops[0].Objects))
	}
	if diff := cmp.Diff([]int64{0, 0, 4, 500}, got); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
}
