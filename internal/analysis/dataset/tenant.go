package dataset

// Tenant is a group of workloads as the plan resolved it.
type Tenant struct {
	Name      string         `json:"name"`
	Actions   []string       `json:"actions"`
	Aggressor bool           `json:"aggressor"`
	Targets   []TenantTarget `json:"targets"`
	Limit     *Limit         `json:"limit"`
	// Pools of its volumes; none: unknown.
	Pools []string `json:"pools"`
	// StepsNs are the starts of the aggressor's load steps, in ns after the barrier.
	StepsNs []int64 `json:"stepsNs"`
}

// TenantTarget is what an instance is to get of one kind of I/O in each second; 0: no such target.
type TenantTarget struct {
	Metric    string `json:"metric"`
	P99Ns     int64  `json:"p99Ns"`
	IOPSFloor int64  `json:"iopsFloor"`
}

// Limit of the I/O of each instance, over all its volumes; 0: none.
type Limit struct {
	ReadIOPS   float64 `json:"readIOPS"`
	WriteIOPS  float64 `json:"writeIOPS"`
	ReadBps    float64 `json:"readBps"`
	WriteBps   float64 `json:"writeBps"`
	EnforcedBy string  `json:"enforcedBy"`
}
