package bundle

import (
	"time"

	"github.com/cnsbench/cnsbench/internal/machine"
)

// EnvironmentFormat is the version of environment.json. It grows when facts are added, so that a comparison can tell a
// fact that an earlier version did not record from one that the machine does not have.
const EnvironmentFormat = 3

// Environment is environment.json: the machine of a run. Unknown fields are empty and named in Warnings.
type Environment struct {
	Format         int               `json:"format,omitempty"` // EnvironmentFormat; 0: an earlier version
	CollectedAt    time.Time         `json:"collectedAt"`
	Hostname       string            `json:"hostname"`
	OS             string            `json:"os"` // PRETTY_NAME of os-release
	Kernel         Kernel            `json:"kernel"`
	CPU            CPU               `json:"cpu"`
	Memory         Memory            `json:"memory"`
	Cgroup         Cgroup            `json:"cgroup"`
	Devices        []BlockDevice     `json:"blockDevices"`
	Filesystems    []Filesystem      `json:"filesystems"`
	Tools          map[string]string `json:"tools"`          // program → first line of its version; "" = not installed
	Virtualization string            `json:"virtualization"` // "kvm", "docker", "none", …
	Clocksource    string            `json:"clocksource"`
	Load           [3]float64        `json:"load"` // 1, 5, 15 minutes at the start
	// KernelParameters are those of the kernel's command line. Only the parameters that affect performance have their
	// values, because others may be secrets.
	KernelParameters []string `json:"kernelParameters,omitempty"`
	// Sysctls are the settings that affect I/O, by name.
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// Programs are the files of the programs that the run starts or may start, by name.
	Programs map[string]machine.Program `json:"programs,omitempty"`
	// ClockSync is the state of the machine's time synchronization.
	ClockSync *ClockSync `json:"clockSync,omitempty"`
	// Engine is the result of engine.Environment: driver, version, parameters.
	Engine   map[string]any `json:"engine,omitempty"`
	Warnings []string       `json:"warnings,omitempty"`
}

// ClockSync is the kernel's state of the time synchronization (adjtimex(2)), as the daemon that steers the clock sets
// it.
type ClockSync struct {
	Synchronized bool  `json:"synchronized"`
	OffsetNanos  int64 `json:"offsetNs"`
	ErrorNanos   int64 `json:"maxErrorNs"` // an upper bound
}

// Kernel of the machine.
type Kernel struct {
	Release string `json:"release"`
	Version string `json:"version"`
	Arch    string `json:"arch"`
}

// CPU of the machine. Count is the number of logical CPUs available to this process.
type CPU struct {
	Model       string            `json:"model"`
	Count       int               `json:"count"`
	Governor    string            `json:"governor"`
	Driver      string            `json:"driver,omitempty"` // that scales the frequency
	MaxKHz      int64             `json:"maxFrequencyKHz,omitempty"`
	Turbo       string            `json:"turbo,omitempty"`       // "on", "off"
	SMT         string            `json:"smt,omitempty"`         // "on", "off", …
	Mitigations map[string]string `json:"mitigations,omitempty"` // vulnerability → kernel's answer
}

// Memory of the machine, in bytes.
type Memory struct {
	Total     int64 `json:"totalBytes"`
	Available int64 `json:"availableBytes"`
	Swap      int64 `json:"swapBytes"`
	// HugePages is the active mode of transparent huge pages.
	HugePages string `json:"transparentHugePages,omitempty"`
}

// Cgroup of this process, version 2; limits as the kernel writes them.
type Cgroup struct {
	Path      string `json:"path"`
	CPUMax    string `json:"cpuMax,omitempty"`
	MemoryMax string `json:"memoryMax,omitempty"`
	IOMax     string `json:"ioMax,omitempty"`
	CPUs      string `json:"cpus,omitempty"` // that the cgroup may use
	PIDsMax   string `json:"pidsMax,omitempty"`
}

// BlockDevice as the kernel describes it.
type BlockDevice struct {
	Name          string `json:"name"`
	Device        string `json:"device"` // major:minor
	Model         string `json:"model,omitempty"`
	Bytes         int64  `json:"bytes"`
	Rotational    bool   `json:"rotational"`
	Scheduler     string `json:"scheduler"`
	LogicalBlock  int    `json:"logicalBlock"`
	PhysicalBlock int    `json:"physicalBlock"`
	WriteCache    string `json:"writeCache,omitempty"`
	QueueDepth    int    `json:"queueDepth"` // nr_requests
	ReadAhead     int64  `json:"readAheadBytes,omitempty"`
	MaxRequest    int64  `json:"maxRequestBytes,omitempty"`
	MaxDiscard    int64  `json:"maxDiscardBytes,omitempty"`
	NoMerges      string `json:"noMerges,omitempty"`
	// Throttle is the latency target of the writeback throttle in microseconds.
	Throttle string `json:"writebackThrottleUs,omitempty"`
	// On are the devices below this one, such as the members of a volume group.
	On []string `json:"on,omitempty"`
}

// Roles of file systems.
const (
	BundleRole  = "bundle"
	StorageRole = "storage" // volumes of the built-in drivers
)

// Place is a path in use.
type Place struct{ Role, Path string }

// Filesystem that holds a path in use.
type Filesystem struct {
	Role    string `json:"role,omitempty"`
	Path    string `json:"path"`  // as asked
	Mount   string `json:"mount"` // where it is mounted
	Type    string `json:"type"`
	Source  string `json:"source"`
	Options string `json:"options"` // of the mount and of the superblock
	Device  string `json:"device"`  // st_dev, major:minor
	Bytes   int64  `json:"bytes"`   // -1, also of Free: the file system does not say
	Free    int64  `json:"freeBytes"`
}

// Hosts returns the names of the hosts that the workers of an object workload run on, in the order of their instances;
// nil if the workers are in the runner.
func (e *Environment) Hosts() (names []string) {
	hosts, _ := e.Engine["hosts"].([]any)
	for _, h := range hosts {
		about, _ := h.(map[string]any)
		name, _ := about["name"].(string)
		names = append(names, name)
	}
	return names
}
