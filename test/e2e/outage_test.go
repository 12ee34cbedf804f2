//go:build e2e && !measurement

package e2e

import "time"

// receiverOutage is how long OpenSearch and Prometheus are away in the middle of a run; make measurements has a minute.
const receiverOutage = 6 * time.Second
