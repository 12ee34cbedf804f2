package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// endpoints are the sockets of --csi-endpoint by provisioner: the one that the flag names, or else the driver's own
// name. "" stands for a driver that cannot be asked now; a run then says why.
func (f *runFlags) endpoints(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	for i, text := range f.Endpoints {
		provisioner, socket := splitEndpoint(text)
		if socket == "" || text != "" && provisioner == "" && strings.HasPrefix(text, "=") {
			return nil, fmt.Errorf("invalid --csi-endpoint %q: want SOCKET or PROVISIONER=SOCKET", text)
		}
		socket = local.SocketPath(socket)
		f.Endpoints[i] = socket // a record is read in another directory
		if provisioner != "" {
			f.Endpoints[i] = provisioner + "=" + socket
		} else if name, err := local.DriverName(ctx, socket); err == nil {
			provisioner = name
		}
		if other, twice := all[provisioner]; twice && provisioner != "" {
			return nil, fmt.Errorf("--csi-endpoint: %s and %s are both of %s", other, socket, provisioner)
		} else if twice {
			return nil, fmt.Errorf("--csi-endpoint %s: no driver answers: with several, write PROVISIONER=SOCKET", socket)
		}
		all[provisioner] = socket
	}
	return all, nil
}

// splitEndpoint returns the parts of [PROVISIONER=]SOCKET.
func splitEndpoint(text string) (provisioner, socket string) {
	before, after, named := strings.Cut(text, "=")
	if !named || strings.ContainsAny(before, "/:") {
		return "", text
	}
	return before, after
}

// checkEndpoints fails if a driver that a plan uses does not listen, or if the plan uses none of those of
// --csi-endpoint: else another driver would be measured.
func (f *runFlags) checkEndpoints(p *plan.Plan) error {
	if socket, unnamed := p.Endpoints[""]; unnamed {
		if err := local.CheckEndpoint(socket); err != nil {
			return err
		}
		return nil // its name is unknown: the run asks again, and has the reason in its bundle
	}
	used := map[string]bool{}
	for _, sc := range p.StorageClasses {
		if socket, external := p.Endpoints[sc.Provisioner]; external {
			used[sc.Provisioner] = true
			if err := local.CheckEndpoint(socket); err != nil {
				return err
			}
		}
	}
	if len(f.Endpoints) == 0 || len(used) > 0 {
		return nil
	}
	var classes []string
	for _, name := range slices.Sorted(maps.Keys(p.StorageClasses)) {
		classes = append(classes, fmt.Sprintf("%s (%s)", name, p.StorageClasses[name].Provisioner))
	}
	return fmt.Errorf("--csi-endpoint: no StorageClass of this run is of %s; it uses %s: put the driver's StorageClass "+
		"in a further FILE and name it, for example by --set vars.storageClass=NAME",
		strings.Join(slices.Sorted(maps.Keys(p.Endpoints)), " or "), strings.Join(classes, ", "))
}
