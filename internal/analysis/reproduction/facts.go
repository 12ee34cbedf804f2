// Package reproduction compares a run with an earlier one of the same Benchmark: the facts that are recorded of what
// was asked for and of where it ran.
package reproduction

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// Facts are recorded values by name. Names are paths: blockDevices[sda].scheduler.
type Facts map[string]string

// maxFacts bounds the facts of a bundle, which is untrusted.
const maxFacts = 200_000

// runnerPod matches the names of runners' pods (package podrunner), which differ between any two runs.
var runnerPod = regexp.MustCompile(`^cnsb-[0-9a-f]+-runner$`)

// InPod reports whether a run was in a runner's pod.
func InPod(e *bundle.Environment) bool { return runnerPod.MatchString(e.Hostname) }

// OfEnvironment returns the facts of environment.json.
func OfEnvironment(e bundle.Environment) (Facts, error) {
	if InPod(&e) {
		e.Hostname = "a runner's pod"
	}
	e.Devices, e.Filesystems = slices.Clone(e.Devices), slices.Clone(e.Filesystems)
	for i := range e.Filesystems { // earlier versions had no roles, but an order
		if e.Filesystems[i].Role == "" {
			e.Filesystems[i].Role = []string{bundle.BundleRole, bundle.StorageRole}[min(i, 1)]
		}
	}
	names := roles(&e)
	f := Facts{}
	for _, p := range e.KernelParameters {
		name, value, given := strings.Cut(p, "=")
		if !given {
			value = "set"
		}
		f["kernelParameters."+name] = value
	}
	e.KernelParameters = nil
	devices := e.Devices
	e.Devices = nil
	if err := f.add("", e); err != nil {
		return nil, err
	}
	for i := range devices {
		if err := f.add("blockDevices["+names[i]+"].", devices[i]); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// roles names the devices: those of the file systems in use by their role, because the names of devices change from
// boot to boot, the others by their name.
func roles(e *bundle.Environment) []string {
	names := make([]string, len(e.Devices))
	for i, d := range e.Devices {
		names[i] = d.Name
	}
	for _, role := range []string{bundle.StorageRole, bundle.BundleRole} {
		for _, fs := range e.Filesystems {
			if i := deviceOf(&fs, e.Devices); fs.Role == role && i >= 0 && names[i] == e.Devices[i].Name {
				names[i] = role
			}
		}
	}
	return names
}

// deviceOf returns the index of the device that holds a file system, or whose partition does; -1 if it is not known.
func deviceOf(fs *bundle.Filesystem, devices []bundle.BlockDevice) int {
	source, local := strings.CutPrefix(fs.Source, "/dev/")
	best := -1
	for i, d := range devices {
		rest, of := strings.CutPrefix(source, d.Name)
		partition := strings.Trim(strings.TrimPrefix(rest, "p"), "0123456789") == ""
		if local && of && partition && (best < 0 || len(d.Name) > len(devices[best].Name)) {
			best = i
		}
		if fs.Device != "" && fs.Device == d.Device {
			return i
		}
	}
	return best
}

// resolved are the members of the plan in run.json that shape a run.
type resolved struct {
	Runtime  string         `json:"runtime"`
	Grace    string         `json:"gracePeriod"`
	Drivers  map[string]any `json:"storageClasses"`
	Vars     map[string]any `json:"vars"`
	Variants map[string]any `json:"variants"`
	Inject   string         `json:"inject"`
}

// OfRun returns the facts of what was run: the Benchmark with its defaults and variables, the seed, injected faults,
// the inputs with their hashes, and the versions of the programs.
func OfRun(r *bundle.Run) (Facts, error) {
	f := Facts{"seed": fmt.Sprint(r.Seed), "platform": r.Engine}
	var spec map[string]any
	if len(r.Spec) > 0 {
		if err := json.Unmarshal(r.Spec, &spec); err != nil {
			return nil, fmt.Errorf("read spec of run.json: %w", err)
		}
	}
	if inner, ok := spec["spec"].(map[string]any); ok {
		spec = inner
	}
	delete(spec, "seed") // it may have been drawn: r.Seed is the one in use
	var plan resolved
	if len(r.Plan) > 0 {
		if err := json.Unmarshal(r.Plan, &plan); err != nil {
			return nil, fmt.Errorf("read plan of run.json: %w", err)
		}
	}
	for name, v := range map[string]any{"benchmark.": spec, "variables.": plan.Vars, "variants.": plan.Variants,
		"classDrivers.": plan.Drivers, "versions.": r.Versions,
		"limits.": map[string]string{"runtime": plan.Runtime, "gracePeriod": plan.Grace}} {
		if err := f.add(name, v); err != nil {
			return nil, err
		}
	}
	if plan.Inject != "" {
		f["inject"] = plan.Inject
	}
	for _, t := range r.Source.Traces {
		f["trace["+t.Rate+"].sha256"] = t.SHA256
	}
	for _, w := range r.Source.Workloads {
		f["workload["+w.Name+"].sha256"] = w.SHA256
	}
	return f, nil
}

// Of returns all facts of a bundle. A bundle without environment.json has those of its run only.
func Of(b *bundle.Bundle) (Facts, error) {
	f, err := OfRun(&b.Run)
	if err != nil {
		return nil, err
	}
	e, err := b.Environment()
	if err != nil {
		return nil, err
	}
	of, err := OfEnvironment(e)
	maps.Copy(f, of)
	return f, err
}

// add flattens a value of JSON.
func (f Facts) add(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var plain any
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&plain); err != nil {
		return err
	}
	f.flatten(name, plain)
	if len(f) > maxFacts {
		return fmt.Errorf("too many facts: want at most %d", maxFacts)
	}
	return nil
}

func (f Facts) flatten(name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			f.flatten(join(name, k), inner)
		}
	case []any:
		f.list(name, v)
	case nil:
	default:
		if text := fmt.Sprint(v); text != "" && len(f) <= maxFacts {
			f[strings.TrimSuffix(name, ".")] = text
		}
	}
}

// list flattens a list: objects under their name, so that their order has no meaning; other values in one fact.
func (f Facts) list(name string, list []any) {
	var words []string
	taken := map[string]bool{}
	for i, v := range list {
		object, ok := v.(map[string]any)
		if !ok {
			words = append(words, fmt.Sprint(v))
			continue
		}
		key := keyOf(object)
		if key == "" || taken[key] {
			key = fmt.Sprint(i)
		}
		taken[key] = true
		f.flatten(strings.TrimSuffix(name, ".")+"["+key+"].", object)
	}
	if len(words) > 0 {
		f.flatten(name, strings.Join(words, " "))
	}
}

// keyOf is what tells an object of a list from the others.
func keyOf(object map[string]any) string {
	for _, k := range []string{"role", "provisioner", "name", "driver"} {
		if text, ok := object[k].(string); ok && text != "" {
			return text
		}
	}
	return ""
}

func join(name, key string) string {
	if name == "" || strings.HasSuffix(name, ".") {
		return name + key + "."
	}
	return name + "." + key + "."
}
