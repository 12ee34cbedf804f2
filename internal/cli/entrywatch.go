package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/volumeprobe"
	"github.com/cnsbench/cnsbench/internal/entrycheck"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/run"
)

// silent is an observer that shows nothing.
type silent struct{}

func (silent) Phase(run.Phase)         {}
func (silent) OpEnded(*op.Op)          {}
func (silent) Log(source, line string) {}

// watchStep is how often volumes are looked at. A look takes at most a tenth of the time.
const watchStep = 20 * time.Millisecond

// watchVolumes looks at the directories of volumes until the result is called, which returns what was seen.
func watchVolumes(dir string) func() entrycheck.Usage {
	stop, done := make(chan struct{}), make(chan entrycheck.Usage)
	go func() {
		var most entrycheck.Usage
		for wait := watchStep; ; {
			select {
			case <-stop:
				done <- most
				return
			case <-time.After(wait):
			}
			began := time.Now()
			now := usageOf(dir)
			raise(&most, now)
			wait = max(watchStep, 10*time.Since(began))
		}
	}()
	return func() entrycheck.Usage { close(stop); return <-done }
}

// raise raises what was seen by what is seen now.
func raise(most *entrycheck.Usage, now entrycheck.Usage) {
	most.Bytes, most.Files = max(most.Bytes, now.Bytes), max(most.Files, now.Files)
	most.Changed = most.Changed || now.Changed
}

// usageOf adds up the files of the volumes below a directory, which may not exist.
func usageOf(dir string) (u entrycheck.Usage) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // it is gone
		case filepath.Dir(path) == dir || path == dir: // a volume
			return nil
		case strings.HasPrefix(d.Name(), volumeprobe.Prefix):
			return nil
		}
		u.Changed = true
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			u.Files++
			u.Bytes += info.Size()
		}
		return nil
	})
	return u
}

// leftOf lists the directories, mounts and processes of a run.
func leftOf(runID, storage string) (left []string, err error) {
	dirs := []string{filepath.Join(os.TempDir(), owned.ScratchName(runID)), filepath.Join(storage, runID)}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		if _, err := os.Lstat(dir); err == nil {
			left = append(left, "directory "+dir)
		}
		for line := range strings.Lines(string(mounts)) {
			if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], dir+"/") {
				left = append(left, "mount "+f[4])
			}
		}
	}
	return append(left, processesOfRun(runID)...), nil
}

// processesOfRun lists the processes whose environment names a run: its workloads, agents and drivers.
func processesOfRun(runID string) (left []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended, or is of another user
		}
		for v := range strings.SplitSeq(string(env), "\x00") {
			if v == "RUN_ID="+runID || v == owned.Environment(runID) {
				left = append(left, fmt.Sprintf("process %s", filepath.Base(filepath.Dir(file))))
				break
			}
		}
	}
	return left
}
