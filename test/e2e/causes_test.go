//go:build e2e && measurement

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// causesJSON has what a summary says of causes.
type causesJSON struct {
	Actions []struct {
		Name   string
		Causes []struct {
			Component, Step, Kind, Evidence string
			StandsOut                       bool
		}
		StandsOut string
	}
	Validity []struct{ Name string }
}

const (
	causeRuns  = 10 // of each cause
	causeLeast = 9  // of them must rank it first
)

// eachTenth creates volumes, ten per second.
func eachTenth(more string) string {
	return head + "spec: {runtime: 2s, actions: [{name: v, rateName: r, createObjSpec: {volume: {storageClass: sut, size: 64Mi" +
		more + "}}}],\n  rates: [{name: r, constantRateSpec: {interval: 100ms}}]}\n"
}

// TestCauses injects one cause at a time into runs on this machine, and wants it ranked first in at least nine of ten.
func TestCauses(t *testing.T) {
	slots := strings.Replace(eachTenth(""), "{name: r, ", "{name: r, maxInFlight: 1, onSaturation: queue, ", 1)
	for _, tt := range []struct {
		name, text, component, evidence string
		root, hogs, slowMkfs            bool
	}{
		{name: "slow RPC", text: eachTenth("") + class("null", `inject: "rpcs: {CreateVolume: {delay: 800ms}}"`),
			component: "CSI driver", evidence: "CreateVolume takes 8"},
		{name: "one at a time", text: slots + class("null", `inject: "rpcs: {CreateVolume: {delay: 200ms}}"`),
			component: "ops that it waited for", evidence: "unblocked"},
		{name: "slow mkfs", text: eachTenth(", attach: true") + class("loopfile"), component: "CSI driver (mkfs)",
			evidence: "mkfs takes", root: true, slowMkfs: true},
		{name: "busy node", text: eachTenth("") + class("null"), component: "other processes on the machine",
			evidence: "CPUs on average, mostly", hogs: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.root {
				needRoot(t)
			}
			b := newBox(t)
			if tt.slowMkfs {
				b.slowMkfs()
			}
			if tt.hogs {
				hog(t, 8) // one process for each CPU seldom makes an operation wait
			}
			first := 0
			for range causeRuns {
				a := b.causes(tt.text).Actions[0]
				if len(a.Causes) > 0 && a.Causes[0].StandsOut && a.Causes[0].Component == tt.component &&
					strings.Contains(a.StandsOut, tt.evidence) {
					first++
					continue
				}
				t.Logf("%s\n%+v", a.StandsOut, a.Causes)
			}
			t.Logf("ranked first in %d of %d", first, causeRuns)
			if first < causeLeast {
				t.Errorf("ranked first in %d of %d, want %d", first, causeRuns, causeLeast)
			}
			b.clean()
		})
	}
}

// TestNoCause checks that none stands out where nothing is injected, unless the machine is busy.
func TestNoCause(t *testing.T) {
	b := newBox(t)
	none, busy := 0, 0
	for range causeRuns {
		found := b.causes(eachTenth("") + class("null"))
		switch a := found.Actions[0]; {
		case a.StandsOut == "none stands out":
			none++
		case len(a.Causes) > 0 && a.Causes[0].Kind == "busyMachine":
			busy++
		default:
			t.Logf("%s", a.StandsOut)
		}
	}
	t.Logf("none stands out in %d of %d; in %d others competed for the CPUs", none, causeRuns, busy)
	if none+busy < causeLeast {
		t.Errorf("none stands out in %d of %d", none, causeRuns)
	}
	if none == 0 {
		t.Skipf("others competed for the CPUs of this machine in all of %d runs", busy)
	}
}

// causes runs a Benchmark, and reads what stands out.
func (b *box) causes(text string) (found causesJSON) {
	b.Helper()
	if err := os.RemoveAll(b.bundle()); err != nil {
		b.Fatal(err)
	}
	b.bench(text).wants(b.T, 0)
	decode(b, b.run("show", b.bundle(), "--output", "json").wants(b.T, 0).stdout, &found)
	if len(found.Actions) != 1 {
		b.Fatalf("%+v", found)
	}
	return found
}

// slowMkfs puts a program before mkfs.ext4 that takes a second more.
func (b *box) slowMkfs() {
	b.Helper()
	program, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		b.Fatal(err)
	}
	dir := b.in("slow")
	script := fmt.Sprintf("#!/bin/sh\nsleep 1\nexec %s \"$@\"\n", program)
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mkfs.ext4"), []byte(script), 0o755); err != nil {
		b.Fatal(err)
	}
	b.path = dir + ":" + b.path
}
