package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/test/bench/scalemodel"
)

// The names of components of which scale measures the CPU and memory, besides the parts of the test bed.
const (
	runnerComponent = "runner"
	kwokComponent   = "kwok"
	agentsComponent = "simulated agents"
	otherParts      = "the rest of the test bed"
	restComponent   = scalemodel.Other
)

// componentOf returns the component of a part of the test bed: those that have to do with volumes of null, one each.
func componentOf(part string) string {
	switch part {
	case "etcd", "scheduler":
		return part
	case "apiserver":
		return "kube-apiserver"
	case "kcm":
		return "kube-controller-manager"
	case "driver-null":
		return "driver null"
	case "snapshot-controller":
		return part
	}
	if kind, ok := strings.CutSuffix(part, "-null"); ok {
		return kind
	}
	return otherParts
}

// processes has the process IDs of each component.
type processes map[string][]int

// bedProcesses returns those of the test bed, from its records.
func (e *env) bedProcesses() (processes, error) {
	files, err := filepath.Glob(filepath.Join(e.root, "out", "testbed", "proc", "*.json"))
	if err != nil {
		return nil, err
	}
	of := processes{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var r struct {
			Name string
			PID  int
		}
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, err
		}
		c := componentOf(r.Name)
		of[c] = append(of[c], r.PID)
	}
	return of, nil
}

// reading has the usage of each component at one instant, and that of the machine.
type reading struct {
	at         time.Time
	of         map[string]usage
	busy, nice time.Duration // of all CPUs, since the machine's start
}

// read reads the usage of all components.
func (p processes) read() reading {
	r := reading{at: time.Now(), of: map[string]usage{}}
	r.busy, r.nice = machineBusy()
	for c, pids := range p {
		var all usage
		for _, pid := range pids {
			if u, ok := usageOf(pid); ok {
				all.cpu += u.cpu
				all.rss += u.rss
			}
		}
		r.of[c] = all
	}
	return r
}

// machineBusy returns the time for which CPUs of the machine ran something, without processes of low priority, and the
// time of these: the first line of /proc/stat. Its fields 4 and 5 are idle time, and from 8 on it is the host's.
func machineBusy() (busy, nice time.Duration) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		n, _ := strconv.ParseInt(field, 10, 64)
		switch ticks := time.Duration(n) * 10 * time.Millisecond; i {
		case 1, 3, 6, 7:
			busy += ticks
		case 2:
			nice = ticks
		}
	}
	return busy, nice
}

// watchComponents reads all components each second until stop is called.
func (p processes) watch() (stop func() []reading) {
	done, result := make(chan struct{}), make(chan []reading, 1)
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		all := []reading{p.read()}
		for {
			select {
			case <-done:
				result <- append(all, p.read())
				return
			case <-tick.C:
				all = append(all, p.read())
			}
		}
	}()
	return func() []reading { close(done); return <-result }
}

// consumption is what components used between two instants.
type consumption struct {
	cores      map[string]float64 // CPUs, on average; restComponent: what no component used of the machine's
	rss        map[string]int64   // bytes at the end
	busy, nice float64            // CPUs of the machine; nice: of processes of low priority, which are not in busy
}

// consumed returns what components used between two instants. A component that ended is left out.
func consumed(all []reading, from, to time.Time) consumption {
	first, last := nearest(all, from), nearest(all, to)
	c := consumption{cores: map[string]float64{}, rss: map[string]int64{}}
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 {
		return c
	}
	c.busy = (last.busy - first.busy).Seconds() / seconds
	c.nice = (last.nice - first.nice).Seconds() / seconds
	known := 0.0
	for name, u := range last.of {
		if used := (u.cpu - first.of[name].cpu).Seconds() / seconds; used >= 0 {
			c.cores[name], c.rss[name] = used, u.rss
			known += used
		}
	}
	c.cores[restComponent] = max(0, c.busy-known)
	return c
}

func nearest(all []reading, at time.Time) reading {
	best := all[0]
	for _, r := range all {
		if r.at.Sub(at).Abs() < best.at.Sub(at).Abs() {
			best = r
		}
	}
	return best
}

// usageAt returns the sample of a process that is nearest to an instant.
func usageAt(all []usage, at time.Time) usage {
	best := usage{}
	for _, u := range all {
		if best.at.IsZero() || u.at.Sub(at).Abs() < best.at.Sub(at).Abs() {
			best = u
		}
	}
	return best
}
