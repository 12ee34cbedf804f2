package bundle

import "time"

// Environment is environment.json: the machine of a run. Unknown fields are empty and named in Warnings.
type Environment struct {
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
	// Engine is the result of engine.Environment: driver, version, parameters.
	Engine   map[string]any `json:"engine,omitempty"`
	Warnings []string       `json:"warnings,omitempty"`
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
	Mitigations map[string]string `json:"mitigations,omitempty"` // vulnerability → kernel's answer
}

// Memory of the machine, in bytes.
type Memory struct {
	Total     int64 `json:"totalBytes"`
	Available int64 `json:"availableBytes"`
	Swap      int64 `json:"swapBytes"`
}

// Cgroup of this process, version 2; limits as the kernel writes them.
type Cgroup struct {
	Path      string `json:"path"`
	CPUMax    string `json:"cpuMax,omitempty"`
	MemoryMax string `json:"memoryMax,omitempty"`
	IOMax     string `json:"ioMax,omitempty"`
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
}

// Filesystem that holds a path in use.
type Filesystem struct {
	Path    string `json:"path"`  // as asked
	Mount   string `json:"mount"` // where it is mounted
	Type    string `json:"type"`
	Source  string `json:"source"`
	Options string `json:"options"` // of the mount and of the superblock
	Device  string `json:"device"`  // st_dev, major:minor
	Bytes   int64  `json:"bytes"`
	Free    int64  `json:"freeBytes"`
}
