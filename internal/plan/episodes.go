package plan

import (
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/hints"
)

// resolveEpisodes records which actions follow which. It runs before any action is resolved,
// because an action later in the file may create the target of an action in an episode.
func resolveEpisodes(g *graph) {
	for _, head := range g.order {
		for i, name := range head.spec.Then {
			path := fmt.Sprintf("%s.then[%d]", head.path, i)
			n, ok := g.nodes[string(name)]
			switch {
			case !ok:
				g.Fail(path, hints.Suggest(string(name), sortedKeys(g.nodes)), "action %q not found", name)
				continue
			case n == head:
				g.Fail(path, "", "%q cannot follow itself", name)
				continue
			case slices.Index(head.spec.Then, name) < i:
				g.Fail(path, "an action of its own, so that their figures stay apart", "%q follows twice", name)
				continue
			case n.spec.RateName != "" || n.spec.StartAfter != nil || n.spec.StartAfterAction != "":
				g.Fail(path, "leave out its rateName and startAfter",
					"%q has a time of its own, so that it cannot follow %q", name, head.spec.Name)
			case len(n.spec.Then) > 0:
				g.Fail(path, "one list names all that follows, in its order",
					"%q follows %q, and has actions that follow itself", name, head.spec.Name)
			}
			n.heads = append(n.heads, head)
			n.out.Chained = true
			head.out.Then = append(head.out.Then, string(name))
		}
	}
}

// inEpisode reports whether n follows a, or a and n follow the same action and a comes
// first. Then n acts on the objects that a creates in the same episode.
func (n *node) inEpisode(a *node) bool {
	for _, head := range n.heads {
		me := slices.Index(head.spec.Then, n.spec.Name)
		if at := slices.Index(head.spec.Then, a.spec.Name); a == head || at >= 0 && at < me {
			return true
		}
	}
	return false
}
