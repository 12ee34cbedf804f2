package cluster

import "github.com/cnsbench/cnsbench/hack/testbed/internal/image"

// sysbench is Debian's.
const sysbench = "/usr/bin/sysbench"

// sysbenchImage has what the library's entry sysbench-fileio calls.
func sysbenchImage() (image.Image, error) {
	return programsImage("sysbench", "date", "df", "mkdir", "sync", "touch")
}
