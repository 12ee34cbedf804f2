package inventory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
)

// Bounds of the provider's objects.
const (
	maxProviderObjects = 200
	maxProviderBytes   = 256 << 10
)

// providerObjects reads the custom resources of the providers: those whose API group has the domain of a driver's name,
// such as longhorn.io of driver.longhorn.io. Only their specifications are kept; their states change all the time.
func (r *reader) providerObjects(drivers []string) {
	domains := domainsOf(drivers)
	if len(domains) == 0 {
		return
	}
	text, err := r.client.Text(r.ctx, "/apis")
	var groups metav1.APIGroupList
	if err == nil {
		err = json.Unmarshal(text, &groups)
	}
	if err != nil {
		r.missing("providerObjects", err)
		return
	}
	c := collection{objects: map[string]any{}}
	for _, g := range groups.Groups {
		if slices.ContainsFunc(domains, func(d string) bool { return g.Name == d || strings.HasSuffix(g.Name, "."+d) }) {
			r.group(&c, g.PreferredVersion.GroupVersion)
		}
	}
	r.found["providerObjects"] = c.objects
	if c.dropped > 0 {
		r.unread["providerObjects"] = fmt.Sprintf("%d objects are left out: limit of %d objects and %d KiB", c.dropped,
			maxProviderObjects, maxProviderBytes>>10)
	}
}

// collection is what is kept of the provider's objects.
type collection struct {
	objects map[string]any // by kind, namespace and name
	bytes   int
	dropped int
}

// group reads the objects of an API group.
func (r *reader) group(c *collection, groupVersion string) {
	group, version, _ := strings.Cut(groupVersion, "/")
	text, err := r.client.Text(r.ctx, "/apis/"+groupVersion)
	var list metav1.APIResourceList
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		r.missing(groupVersion, err)
		return
	}
	for _, resource := range list.APIResources {
		if strings.Contains(resource.Name, "/") || !slices.Contains(resource.Verbs, "list") {
			continue
		}
		kind := api.Kind{Group: group, Version: version, Resource: resource.Name, Name: resource.Kind,
			Namespaced: resource.Namespaced, JSON: true, New: func() api.Object { return new(api.Any) }}
		list, _ := r.list(kind.String(), kind)
		for _, o := range list {
			c.add(kind, o)
		}
	}
}

func (c *collection) add(kind api.Kind, o api.Object) {
	fields, err := fieldsOf(o)
	text, marshal := json.Marshal(fields)
	if err != nil || marshal != nil || len(c.objects) == maxProviderObjects || c.bytes+len(text) > maxProviderBytes {
		c.dropped++
		return
	}
	c.bytes += len(text)
	c.objects[strings.Join([]string{kind.String(), o.GetNamespace(), o.GetName()}, "/")] = fields
}

// domainsOf are the last two labels of the drivers' names. The domains of Kubernetes itself and of the built-in drivers
// have no provider.
func domainsOf(drivers []string) []string {
	var list []string
	for _, d := range drivers {
		labels := strings.Split(d, ".")
		if len(labels) < 2 {
			continue
		}
		domain := strings.Join(labels[len(labels)-2:], ".")
		if domain != "k8s.io" && domain != "cnsbench.dev" && !slices.Contains(list, domain) {
			list = append(list, domain)
		}
	}
	return list
}
