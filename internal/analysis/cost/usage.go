package cost

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/metric"
)

// instanceTypeLabel is the label with a node's type; environment.json has it under this name.
const instanceTypeLabel = "node.kubernetes.io/instance-type"

// Read collects what a run used from its bundle. Errors are those of reading it.
func Read(d *dataset.Data) (*Usage, error) {
	u := &Usage{Run: time.Duration(max(0, d.End())), Requests: map[string]float64{}, Classes: map[string]*ClassUse{}}
	if !d.Bundle.Run.EndedAt.Known() {
		u.unobserved("the time after the last record: the run has no end")
	}
	if err := u.readNodes(d); err != nil {
		return nil, err
	}
	if err := u.readVolumes(d); err != nil {
		return nil, err
	}
	u.readIO(d)
	u.readRequests(d)
	u.readCPU(d)
	return u, nil
}

func (u *Usage) unobserved(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(u.Unobserved, text) {
		u.Unobserved = append(u.Unobserved, text)
	}
}

// readNodes takes the nodes of the cluster, or the machines of the run.
func (u *Usage) readNodes(d *dataset.Data) error {
	env, err := d.Bundle.Environment()
	if err != nil {
		return err
	}
	if d.Bundle.Run.OnCluster() {
		list, ok := env.Engine["nodes"].([]any)
		if !ok {
			u.unobserved("nodes: the bundle has no list of the cluster's")
			return nil
		}
		for _, x := range list {
			of, _ := x.(map[string]any)
			name, _ := of["name"].(string)
			kind, _ := of[instanceTypeLabel].(string)
			u.Nodes = append(u.Nodes, Node{Name: name, Type: kind})
		}
		return nil
	}
	name := env.Hostname
	if name == "" {
		name = "this machine"
	}
	u.Nodes = []Node{{Name: name}}
	machines := map[string]bool{}
	for _, m := range d.Machines {
		machines[m.ID] = true
	}
	for i := 1; i < len(machines); i++ {
		u.Nodes = append(u.Nodes, Node{Name: "another machine"})
	}
	return nil
}

// readIO counts the I/Os and the bytes of workloads on volumes.
func (u *Usage) readIO(d *dataset.Data) {
	type key struct {
		instance, metric string
		phase            int
	}
	counts, counted := map[key]float64{}, map[string]bool{}
	for _, h := range d.Totals {
		if h.Unit == metric.Nanoseconds {
			counts[key{h.Instance, h.Metric, h.Phase}] += float64(h.Hist.N())
		}
	}
	// Tools that measure no latencies may count, and so does the log of one that was cut off.
	for _, suffix := range []string{metric.IOs, metric.Completed} {
		known := maps.Clone(counts)
		for _, x := range d.Scalars { // of each life of an instance
			name, ok := strings.CutSuffix(x.Metric, suffix)
			if k := (key{x.Instance, name, x.Phase}); ok && known[k] == 0 {
				counts[k] += x.Value
			}
		}
	}
	for k, n := range counts {
		if slices.Contains([]string{metric.Read, metric.Write, metric.Trim}, k.metric) && !d.IsObjectWorkload(k.instance) {
			counted[k.instance] = true
			add(&u.IOs, n)
		}
	}
	for _, i := range d.Instances {
		s := d.SamplesOf(i.Name)
		action := dataset.ActionOf(i.Name)
		switch {
		case d.IsObjectWorkload(i.Name):
			continue
		case s == nil:
			u.unobserved("bytes of %s, which has no samples", action)
		case s.Last.Uncounted != "":
			u.unobserved("bytes of %s: %s", action, s.Last.Uncounted.Words())
		default:
			add(&u.Moved, float64(s.Last.ReadBytes+s.Last.WriteBytes))
		}
		if !counted[i.Name] {
			u.unobserved("I/Os of %s, which has neither latencies nor counts", action)
			if !slices.Contains(u.Uncounted, action) {
				u.Uncounted = append(u.Uncounted, action)
			}
		}
	}
}

// requestKinds are the kinds of request of the types of operations on objects.
var requestKinds = map[string]string{"read": "GET", "write": "PUT", "multipart": "PUT", "filewrite": "PUT",
	"head": "HEAD", "list": "LIST", "delete": "DELETE", "copy": "COPY", "init": "PUT", "dispose": "DELETE"}

// Suffix of the number of requests of an operation, with those sent again.
const attempts = ".attempts"

// readRequests counts the operations on objects, their requests and bytes. Operations on files are no requests.
func (u *Usage) readRequests(d *dataset.Data) {
	for _, x := range d.Scalars {
		name, requests := strings.CutSuffix(x.Metric, attempts)
		if !requests || !d.IsObjectWorkload(x.Instance) || copied(d, x.Action, name) {
			continue
		}
		at := func(suffix string) float64 {
			for _, y := range d.Scalars {
				if y.Labels == x.Labels && y.From == x.From && y.Metric == name+suffix {
					return y.Value
				}
			}
			return 0
		}
		bytes := at(metric.Transferred)
		add(&u.IOs, at(metric.Completed))
		add(&u.Moved, bytes)
		if c := d.Creates(x.Action); c != nil && c.ObjectSpec != nil && c.ObjectSpec.Storage.FileSpec != nil {
			continue
		}
		word := name[strings.LastIndexByte(name, '.')+1:]
		kind, ok := requestKinds[strings.TrimRight(word, "0123456789-")]
		if !ok {
			u.unobserved("requests of operation %s: its kind is unknown", word)
			continue
		}
		u.Requests[kind] += x.Value
		if kind == "GET" {
			u.Received += bytes
		}
	}
	if len(u.Requests) > 0 {
		u.unobserved("stored objects: how long they exist is not observed")
	}
}

// readCPU adds up the CPU time of workloads.
func (u *Usage) readCPU(d *dataset.Data) {
	for i := range d.Samples {
		add(&u.CPUSeconds, float64(d.Samples[i].Last.CPUNanos)/1e9)
	}
}

func add(sum **float64, x float64) {
	if *sum == nil {
		*sum = new(float64)
	}
	**sum += x
}
