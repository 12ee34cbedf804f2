package op

// Distribution is a distribution of durations over a whole run, from a source that does not attribute them to
// single ops, such as a kubelet, a controller or a watch. It is reported beside the results and is not a
// milestone of any op.
type Distribution struct {
	// Source is where the durations were counted ("kubelet node1"), Name what was counted ("NodeStageVolume
	// null.csi.example, OK"), How the method.
	Source string `json:"source"`
	Name   string `json:"name"`
	How    string `json:"how"`
	N      int64  `json:"n"`
	// SumNs is the sum of all durations, if it is known.
	SumNs int64 `json:"sumNs,omitempty"`
	// Buckets are in order of their bounds. Durations in no bucket are above the last bound.
	Buckets []Bucket `json:"buckets,omitempty"`
}

// Bucket counts the durations of at most UpToNs that are in no earlier bucket.
type Bucket struct {
	UpToNs int64 `json:"upToNs"`
	N      int64 `json:"n"`
}
