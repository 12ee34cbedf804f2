package op

// VolumeReading is what a CSI driver reported of a volume in use at one instant (NodeGetVolumeStats).
type VolumeReading struct {
	Volume string `json:"volume,omitempty"` // empty: the reading is about all volumes of the driver
	Driver string `json:"driver,omitempty"` // its name; empty: about all drivers
	// At is the middle of the call, and half of its duration lies on either side.
	At          Time  `json:"at"`
	WithinNanos int64 `json:"within"`
	// Bytes and Inodes are nil if the driver did not report them.
	Bytes  *VolumeAmount `json:"bytes,omitempty"`
	Inodes *VolumeAmount `json:"inodes,omitempty"`
	// Abnormal is the volume's condition; nil: the driver does not report it.
	Abnormal *bool `json:"abnormal,omitempty"`
	// Problem is the gRPC code of a call that failed, and why there are no readings otherwise; empty: there is one.
	Problem string `json:"problem,omitempty"`
	// Message is that of the condition or of the problem.
	Message string `json:"message,omitempty"`
	// SamplerNanos is the CPU time that the runner and the driver's process used during the calls for volumes of this
	// driver so far, an upper bound of what the calls cost.
	SamplerNanos int64 `json:"samplerNanos,omitempty"`
}

// VolumeAmount is a usage as the driver reported it, in bytes or inodes. Drivers may leave out Used and Available,
// which are 0 then, and pass on what a file system does not count as -1.
type VolumeAmount struct {
	Total     int64 `json:"total"`
	Used      int64 `json:"used"`
	Available int64 `json:"available"`
}

// UsedShare is the used share of what an unprivileged user can have, or of the total where only one of Used and Available
// was reported; false: not reported.
func (a *VolumeAmount) UsedShare() (share float64, ok bool) {
	switch {
	case !a.known():
		return 0, false
	case a.Used > 0 && a.Available == 0 && a.Total > 0:
		return min(1, float64(a.Used)/float64(a.Total)), true
	case a.Used == 0 && a.Available > 0 && a.Total > 0:
		return 1 - min(1, float64(a.Available)/float64(a.Total)), true
	}
	return float64(a.Used) / float64(a.Used+a.Available), true
}

// known reports whether the driver reported a usage. A negative number also makes others wrong that were computed from it.
func (a *VolumeAmount) known() bool {
	return a != nil && a.Total >= 0 && a.Used >= 0 && a.Available >= 0 && (a.Used > 0 || a.Available > 0)
}
