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
