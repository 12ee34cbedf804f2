package op

// Distribution is of durations that were counted over a whole run, and by
// somebody who does not say which op each belongs to: a kubelet, a controller,
// a watch. It stands beside a result and is no milestone of any op.
type Distribution struct {
	// Source says who counted ("kubelet node1"), Name what ("NodeStageVolume
	// null.csi.example, OK"), How by which means.
	Source string `json:"source"`
	Name   string `json:"name"`
	How    string `json:"how"`
	N      int64  `json:"n"`
	// SumNs is the sum of all of them, where it is known.
	SumNs int64 `json:"sumNs,omitempty"`
	// Buckets in order of their bounds. What is in none was longer than the last.
	Buckets []Bucket `json:"buckets,omitempty"`
}

// Bucket counts the durations of at most UpToNs that are in no bucket before.
type Bucket struct {
	UpToNs int64 `json:"upToNs"`
	N      int64 `json:"n"`
}
