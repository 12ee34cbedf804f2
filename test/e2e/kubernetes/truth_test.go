//go:build e2e

package kubernetes

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/record"
)

// testClockOffset: the clocks of two agents are three seconds ahead and behind. What
// they say of the beginning of their commands is held against what the commands
// themselves print, by the machine's one clock, and their milestones against those
// that watches saw.
func testClockOffset(p *project) {
	c := p.command("local", `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  runtime: 5s
  actions:
    - name: "true"
      createObjSpec: {workload: writer, vars: {node: node1, storageClass: hostdir}}
    - name: ahead
      createObjSpec: {workload: writer, vars: {node: node1, storageClass: hostdir, offset: 3s}}
    - name: behind
      createObjSpec: {workload: writer, vars: {node: node2, storageClass: hostdir, offset: -3s}}
`+writer)
	p.ends(c, 0)
	b, err := record.Open(c.bundle)
	if err != nil {
		p.t.Fatal(err)
	}
	instances, err := b.Instances()
	if err != nil || len(instances) != 3 {
		p.t.Fatalf("%d instances, %v", len(instances), err)
	}
	for _, i := range instances {
		if len(i.Starts) != 1 {
			p.t.Fatalf("%s: starts %+v", i.Name, i.Starts)
		}
		s := i.Starts[0]
		printed := p.printedStart(b, i.Name)
		// The command prints the time a little after it has begun.
		if late := int64(printed - s.At); late < -s.Err || late > s.Err+int64(500*time.Millisecond) {
			p.t.Errorf("%s began at %v ± %v by its agent, and printed %v: %v apart", i.Name, time.Duration(s.At), time.Duration(s.Err), time.Duration(printed), time.Duration(late))
		}
		p.t.Logf("%s: its command printed the time %v after the agent says that it began, ± %v", i.Name, time.Duration(printed-s.At), time.Duration(s.Err))
	}
	for o, err := range b.Ops() {
		if err != nil {
			p.t.Fatal(err)
		}
		p.inOrder(&o, op.Scheduled, op.Initialized, op.Running, op.FirstWrite, op.Ready)
	}
}

// printedStart is the instant that a writer's first line of output has.
func (p *project) printedStart(b *record.Bundle, instance string) op.Time {
	p.t.Helper()
	files, err := b.RawFiles()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range files {
		if f.Instance != instance || f.File != "stdout" {
			continue
		}
		text, err := os.ReadFile(f.Path)
		if err != nil {
			p.t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		unix, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		return op.Time(unix - b.Run.Clock.Start.UnixNano())
	}
	p.t.Fatalf("%s has no stdout", instance)
	return op.Never
}

// inOrder checks that milestones follow one another as far as their errors let us
// know.
func (p *project) inOrder(o *op.Op, names ...string) {
	p.t.Helper()
	var before op.Milestone
	for _, name := range names {
		for _, m := range o.Milestones {
			if m.Name != name {
				continue
			}
			if before.Name != "" && int64(m.At-before.At) < -(m.Err+before.Err) {
				p.t.Errorf("%s: %s at %v ± %v is before %s at %v ± %v", o, name, time.Duration(m.At), time.Duration(m.Err), before.Name, time.Duration(before.At), time.Duration(before.Err))
			}
			before = m
		}
	}
	if before.Name != names[len(names)-1] {
		p.t.Errorf("%s has no milestone %s: %s", o, names[len(names)-1], fmt.Sprint(o.Milestones))
	}
}
