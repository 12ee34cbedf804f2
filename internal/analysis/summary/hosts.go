package summary

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// nameHosts sets the hosts of instances, which have their number, in the run of an object workload on several.
func (s *Summary) nameHosts(b *bundle.Bundle) error {
	if b == nil || !b.Run.ObjectsOnly() {
		return nil
	}
	environment, err := b.Environment()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	hosts := environment.Hosts()
	for i := range s.Workloads {
		for j := range s.Workloads[i].Instances {
			in := &s.Workloads[i].Instances[j]
			n, err := strconv.Atoi(in.Name[strings.LastIndexByte(in.Name, '-')+1:])
			if err != nil || n < 0 || n >= len(hosts) {
				continue
			}
			in.Host = hosts[n]
		}
	}
	return nil
}
