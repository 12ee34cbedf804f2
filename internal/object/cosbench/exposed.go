package cosbench

import (
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/object/model"
)

// tellingKey is the minimum length of an access key that is treated as a secret: shorter ones, such as minio,
// are common words.
const tellingKey = 16

// Secrets returns the credentials of a workload's stores, as a map from the credential to its key. of returns
// the credentials of a store; nil: only those in the file.
func Secrets(w *model.Workload, of func(*model.Store) (model.Secrets, error)) map[string]string {
	found := map[string]string{}
	for i := range w.Stages {
		for j := range w.Stages[i].Works {
			s := &w.Stages[i].Works[j].Store
			secrets, err := s.Secrets, error(nil)
			if of != nil {
				secrets, err = of(s)
			}
			if err != nil {
				continue // opening the store reports it
			}
			for key, value := range secrets {
				found[value] = key
			}
		}
	}
	return found
}

// kept are the attributes whose text a run stores unchanged.
var kept = []string{"name", "description", "driver", "config"}

// exposed rejects secrets in text that a run stores: a bundle contains names and descriptions in many places.
func (p *parser) exposed(n *node, secrets map[string]string) {
	telling := maps.Clone(secrets)
	maps.DeleteFunc(telling, func(value, key string) bool { return key == "accesskey" && len(value) < tellingKey })
	p.within(n, eraser(slices.Collect(maps.Keys(telling))))
}

func (p *parser) within(n *node, find *strings.Replacer) {
	if n.name == "auth" || n.name == "storage" {
		return // its secrets are stored separately
	}
	for _, name := range kept {
		a, ok := n.attrs[name]
		text := a.value
		if name == "config" {
			c, _ := config(nil).with(a)
			maps.DeleteFunc(c, func(key string, _ entry) bool {
				return !slices.ContainsFunc(operationKeys,
					func(known string) bool { return strings.EqualFold(known, key) })
			})
			text = ""
			for _, key := range c.keys() {
				text += c[key].value + "\n"
			}
		}
		if ok && strings.Contains(find.Replace(text), "\x00") {
			p.Fail(a.line, "the bundle would contain it: write something else",
				"the %s of <%s> contains a secret of a storage or auth", name, n.name)
		}
	}
	for _, c := range n.children {
		p.within(c, find)
	}
}
