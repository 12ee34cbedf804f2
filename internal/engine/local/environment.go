package local

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/machine"
	"github.com/cnsbench/cnsbench/internal/redact"
)

// Environment describes the drivers.
func (e *Engine) Environment(context.Context) (map[string]any, error) {
	drivers := []any{}
	for _, name := range slices.Sorted(maps.Keys(e.drivers)) {
		drivers = append(drivers, e.drivers[name].describe())
	}
	env := map[string]any{"node": e.node, "drivers": drivers, "storageDir": e.StorageDir,
		"storageClasses": e.session.StorageClasses, "snapshotClasses": e.session.SnapshotClasses}
	for i, name := range slices.Sorted(maps.Keys(e.drivers)) {
		if d := e.drivers[name]; d.external() {
			process := describeProcess(d.peer())
			drivers[i].(map[string]any)["process"] = process
			if env["driverProcess"] == nil { // where the only one has always been
				env["driverProcess"] = process
			}
		}
	}
	return env, nil
}

// describeProcess describes the process behind an external driver's socket: its program and its flags without secrets.
// The program's hash identifies it, since a driver need not change its version with its code.
func describeProcess(pids []int) map[string]any {
	if len(pids) == 0 {
		return map[string]any{"unknown": "the socket does not name its process"}
	}
	dir := filepath.Join("/proc", fmt.Sprint(pids[0]))
	found := map[string]any{}
	text, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err == nil {
		found["args"] = redact.Args(strings.Split(strings.TrimRight(string(text), "\x00"), "\x00"))
	}
	program, failed := machine.ReadProgram(filepath.Join(dir, "exe"))
	if err != nil || failed != nil {
		found["unknown"] = fmt.Sprintf("process %d cannot be read by this user", pids[0])
		return found
	}
	found["program"] = program
	return found
}
