//go:build e2e && measurement

package e2e

import "time"

// receiverOutage is how long OpenSearch and Prometheus are away in the middle of a run.
const receiverOutage = time.Minute
