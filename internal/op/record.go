package op

// LedgerEntry is one thing to remove. Kind is the engine's own word
// ("volume", "mount", "process", "dir", "driver"); Data is what it needs.
type LedgerEntry struct {
	Kind string            `json:"kind"`
	Name string            `json:"name"`
	Data map[string]string `json:"data,omitempty"`
}

// Sample is a cumulative counter reading of one instance at one instant.
type Sample struct {
	Instance   string `json:"instance"`
	At         Time   `json:"at"`
	ReadBytes  int64  `json:"readBytes"`
	WriteBytes int64  `json:"writeBytes"`
	ReadOps    int64  `json:"readOps"`
	WriteOps   int64  `json:"writeOps"`
	CPUNanos   int64  `json:"cpuNanos"`
	RSSBytes   int64  `json:"rssBytes"`
}

// CanaryIO is one I/O of the canary. Response counts from Intended.
type CanaryIO struct {
	Intended Time
	Started  Time
	Ended    Time
	Write    bool
	Errno    int // 0 when it succeeded
}

// InstanceStart says when a container began its work; At − Intended is its
// skew from the instant at which the barrier was to open.
type InstanceStart struct {
	Instance  string `json:"instance"`
	Container string `json:"container"`
	Intended  Time   `json:"intended"` // Never without a barrier
	At        Time   `json:"at"`
	Err       int64  `json:"err"`             // ± of At in ns
	Phase     int    `json:"phase,omitempty"` // of the workload that it is, from 0
	// Machine is the ID of the boot of the machine that it runs on; empty: unknown.
	Machine string `json:"machine,omitempty"`
}

// InstanceEnd says how a workload instance ended.
type InstanceEnd struct {
	Instance   string         `json:"instance"`
	At         Time           `json:"at"`
	OK         bool           `json:"ok"`
	Containers []ContainerEnd `json:"containers"`
}

// ContainerEnd says how one container ended; exit codes, signals and the OOM
// killer are told apart.
type ContainerEnd struct {
	Name     string `json:"name"`
	Init     bool   `json:"init"`
	ExitCode int    `json:"exitCode"`
	Signal   string `json:"signal,omitempty"`
	OOM      bool   `json:"oom,omitempty"`
	Message  string `json:"message,omitempty"` // last lines of its log on failure
	// Replaced: an op ended it and made it again, so that how it ended says
	// nothing of its instance.
	Replaced bool `json:"replaced,omitempty"`
	// PhaseOver: it was ended because its phase of the workload was over, which
	// is no failure either.
	PhaseOver bool `json:"phaseOver,omitempty"`
}

// MachineCounters are what a machine counts since its boot, over all of its CPUs.
// Times are in ns.
type MachineCounters struct {
	CPUs       int   `json:"cpus"`
	BusyNanos  int64 `json:"busyNanos"`  // user, system and interrupt time
	IdleNanos  int64 `json:"idleNanos"`  // idle, also while it waits for I/O
	StealNanos int64 `json:"stealNanos"` // taken by the hypervisor for others
	Runnable   int   `json:"runnable"`   // tasks that run or wait for a CPU, now
	// Pressure is the time in which some task waited for a CPU, for I/O or for
	// memory (pressure stall information); -1 where the kernel does not count it.
	CPUPressureNanos    int64 `json:"cpuPressureNanos"`
	IOPressureNanos     int64 `json:"ioPressureNanos"`
	MemoryPressureNanos int64 `json:"memoryPressureNanos"`
}

// Machine is a reading of one machine at one instant.
type Machine struct {
	ID       string `json:"machine"`            // the ID of its boot
	Instance string `json:"instance,omitempty"` // whose agent read it; empty: the runner
	At       Time   `json:"at"`
	MachineCounters
	// Use says which processes had the CPUs; nil where they were not looked at.
	Use *MachineUse `json:"use,omitempty"`
}

// MachineUse is the CPU time of the processes of one machine.
type MachineUse struct {
	RunNanos int64 `json:"runNanos"` // the runner and all that it started
	// OtherNanos is the time of all other processes in user space. It grows by
	// what was used since the reading before, and begins with 0.
	OtherNanos int64 `json:"otherNanos"`
	// Top are the others that used most since the reading before, at most three.
	Top []ProcessUse `json:"top,omitempty"`
}

// ProcessUse is what a process and its ended children used since the reading before.
type ProcessUse struct {
	PID      int    `json:"pid"`
	Name     string `json:"name"`
	CPUNanos int64  `json:"cpuNanos"`
}
