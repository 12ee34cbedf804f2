package op

// LedgerEntry is one thing to remove. Kind is defined by the engine ("volume", "mount", "process", "dir",
// "driver"); Data is what the engine needs to remove it.
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
	// Level is that of the reading; empty in older bundles.
	Level SampleLevel `json:"level,omitempty"`
	// SamplerNanos is the CPU time that sampling has taken so far.
	SamplerNanos int64 `json:"samplerNanos,omitempty"`
	// Uncounted says why ReadBytes and WriteBytes may lack I/O of the instance; empty: they have all.
	Uncounted Unobserved `json:"uncounted,omitempty"`
	// Detail is set at the level Detailed.
	Detail *SampleDetail `json:"detail,omitempty"`
}

// CanaryWorkers is how many reads, and how many writes, of a canary are in flight on a volume at most.
const CanaryWorkers = 16

// CanaryIO is one I/O of the canary. Response time: from Intended.
type CanaryIO struct {
	Intended Time
	Started  Time
	Ended    Time
	Write    bool
	Errno    int32 // 0 when it succeeded
}

// InstanceStart records when a container began its work. At − Intended is the skew from the scheduled opening
// of the barrier.
type InstanceStart struct {
	Instance  string `json:"instance"`
	Container string `json:"container"`
	Intended  Time   `json:"intended"` // Never without a barrier
	At        Time   `json:"at"`
	Err       int64  `json:"err"`             // ± error of At in ns
	Phase     int    `json:"phase,omitempty"` // of the workload, from 0
	// Machine is the boot ID of the machine on which the container runs; empty: unknown.
	Machine string `json:"machine,omitempty"`
	// Wall is the wall clock of that machine; nil: the runner's own, or unknown.
	Wall *WallClock `json:"wall,omitempty"`
}

// WallClock is the wall clock of a machine, as it was when a container's agent started there.
type WallClock struct {
	AheadNanos int64 `json:"aheadNanos"` // of the runner's wall clock
	ErrNanos   int64 `json:"errNanos"`   // ± error of AheadNanos
}

// InstanceEnd records how a workload instance ended.
type InstanceEnd struct {
	Instance   string         `json:"instance"`
	At         Time           `json:"at"`
	OK         bool           `json:"ok"`
	Containers []ContainerEnd `json:"containers"`
}

// ContainerEnd records how one container ended. It distinguishes exit codes, signals and the OOM killer.
type ContainerEnd struct {
	Name     string `json:"name"`
	Init     bool   `json:"init"`
	ExitCode int    `json:"exitCode"`
	Signal   string `json:"signal,omitempty"`
	OOM      bool   `json:"oom,omitempty"`
	Message  string `json:"message,omitempty"` // last lines of its log on failure
	// Replaced: an op restarted the container, so that its end is not a result of the instance.
	Replaced bool `json:"replaced,omitempty"`
	// PhaseOver: the container was ended at the end of its phase of the workload, which is not a failure.
	PhaseOver bool `json:"phaseOver,omitempty"`
	// Syncs are the calls for durability of its processes; nil: they were not to be counted.
	Syncs *Syncs `json:"syncs,omitempty"`
}

// Syncs counts the system calls by which the processes of a container asked that data is durable, from their start to
// their end, as the kernel saw them. Files opened with O_SYNC or O_DSYNC make none.
type Syncs struct {
	Fsync         int64 `json:"fsync"`
	Fdatasync     int64 `json:"fdatasync"`
	SyncFileRange int64 `json:"syncFileRange"`
	Msync         int64 `json:"msync"` // with MS_SYNC
	// NotObserved is why there are no counts, which are 0 then; empty: there are.
	NotObserved string `json:"notObserved,omitempty"`
}

// Add adds the counts of o. The sum is not observed where a part of it is not.
func (s *Syncs) Add(o Syncs) {
	s.Fsync, s.Fdatasync = s.Fsync+o.Fsync, s.Fdatasync+o.Fdatasync
	s.SyncFileRange, s.Msync = s.SyncFileRange+o.SyncFileRange, s.Msync+o.Msync
	if s.NotObserved == "" {
		s.NotObserved = o.NotObserved
	}
	if s.NotObserved != "" {
		*s = Syncs{NotObserved: s.NotObserved}
	}
}

// MachineCounters are counters of a machine since its boot, summed over all CPUs. Times are in ns.
type MachineCounters struct {
	CPUs       int   `json:"cpus"`
	BusyNanos  int64 `json:"busyNanos"`  // user, system and interrupt time
	IdleNanos  int64 `json:"idleNanos"`  // idle, including I/O wait
	StealNanos int64 `json:"stealNanos"` // stolen by the hypervisor
	Runnable   int   `json:"runnable"`   // tasks that run or wait for a CPU at the moment
	// The pressures are the time in which at least one task waited for a CPU, for I/O or for memory (pressure
	// stall information, "some"); -1 if the kernel does not count it.
	CPUPressureNanos    int64 `json:"cpuPressureNanos"`
	IOPressureNanos     int64 `json:"ioPressureNanos"`
	MemoryPressureNanos int64 `json:"memoryPressureNanos"`
}

// Machine is a reading of one machine at one instant.
type Machine struct {
	ID       string `json:"machine"`            // boot ID
	Instance string `json:"instance,omitempty"` // instance whose agent read it; empty: the runner
	At       Time   `json:"at"`
	MachineCounters
	// WallAheadNanos is how far the wall clock of the machine is ahead of that which the runner had at the start of the
	// run, plus At. It jumps when a wall clock is set; nil: unknown.
	WallAheadNanos *int64 `json:"wallAhead,omitempty"`
	// Use is the CPU time of processes; nil if it was not read.
	Use *MachineUse `json:"use,omitempty"`
}

// MachineUse is the CPU time of the processes of one machine.
type MachineUse struct {
	RunNanos int64 `json:"runNanos"` // the runner and all processes that it started
	// OtherNanos is the user-space time of all other processes. It starts at 0 and grows by the use since the
	// previous reading.
	OtherNanos int64 `json:"otherNanos"`
	// Top are the other processes with the highest use since the previous reading, at most three.
	Top []ProcessUse `json:"top,omitempty"`
}

// ProcessUse is the CPU time of a process and its ended children since the previous reading.
type ProcessUse struct {
	PID      int    `json:"pid"`
	Name     string `json:"name"`
	CPUNanos int64  `json:"cpuNanos"`
}

// QueryReading is the answer of a Prometheus server to one query at one instant.
type QueryReading struct {
	Query string `json:"query"` // its name
	// At is the middle of the request, and half of its duration lies on either side: the server evaluated within that
	// time. Of a missed instant it is the instant.
	At          Time  `json:"at"`
	WithinNanos int64 `json:"within"`
	// Problem says why there is no value; empty: there are some.
	Problem QueryProblem `json:"problem,omitempty"`
	Message string       `json:"message,omitempty"`
	Values  []QueryValue `json:"values,omitempty"`
	// LeftOut are series without a finite value, and those beyond the limit of a query.
	LeftOut int `json:"leftOut,omitempty"`
}

// QueryValue is the value of one series. Labels are set the first time that the series appears.
type QueryValue struct {
	Series int               `json:"series"` // its number within the query, from 0
	Labels map[string]string `json:"labels,omitempty"`
	Value  float64           `json:"value"`
}

// QueryProblem says why a query has no value at an instant.
type QueryProblem string

// The problems.
const (
	QueryTimeout     QueryProblem = "timeout"
	QueryUnreachable QueryProblem = "unreachable"
	QueryRejected    QueryProblem = "rejected"  // by a status of 3xx or 4xx, or by the server's message
	QueryFailed      QueryProblem = "failed"    // by a status of 5xx
	QueryBadAnswer   QueryProblem = "badAnswer" // no answer of Prometheus, or of another type than a vector or scalar
	QueryNoData      QueryProblem = "noData"
	QueryNotFinite   QueryProblem = "notFinite" // NaN or infinite
	QueryMissed      QueryProblem = "missed"    // an earlier request was not over
)

// Words say what the problem is.
func (p QueryProblem) Words() string {
	switch p {
	case QueryTimeout:
		return "the server did not answer in time"
	case QueryUnreachable:
		return "the server was not reached"
	case QueryRejected:
		return "the server rejected it"
	case QueryFailed:
		return "the server failed"
	case QueryBadAnswer:
		return "the answer was none of a Prometheus server"
	case QueryNoData:
		return "the server had no data"
	case QueryNotFinite:
		return "the value was not finite"
	case QueryMissed:
		return "an earlier request was not over"
	}
	return string(p)
}
