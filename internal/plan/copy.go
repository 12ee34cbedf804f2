package plan

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

var restoreAction = descriptor{
	kind: op.Restore, field: "restoreSpec", resolve: resolveRestore,
	makes: makesVolumes, milestones: volumeMilestones, each: eachCopy,
}

var cloneAction = descriptor{
	kind: op.Clone, field: "cloneSpec", resolve: resolveClone,
	makes: makesVolumes, milestones: volumeMilestones, each: eachCopy,
}

func makesVolumes(*v1alpha1.Action) engine.ObjectKind { return engine.VolumeObject }

func eachCopy(n *node, targets int64) trigger {
	return trigger{map[string]int64{volumes: targets}, targets, n.sizes(targets)}
}

func resolveRestore(g *graph, n *node) {
	s, path := n.spec.RestoreSpec, n.path+".restoreSpec"
	if resolveTarget(g, n, path, s.Target, s.Select, engine.SnapshotObject) {
		resolveCopy(g, n, path, s.NewVolume)
	}
}

func resolveClone(g *graph, n *node) {
	s, path := n.spec.CloneSpec, n.path+".cloneSpec"
	if resolveTarget(g, n, path, s.Target, s.Select, engine.VolumeObject) {
		resolveCopy(g, n, path, s.NewVolume)
	}
}

// resolveCopy resolves the volume that a restore or a clone creates. Fields that are not set
// have the values of the source.
func resolveCopy(g *graph, n *node, path string, v v1alpha1.NewVolume) {
	sources := n.sources()
	if len(sources) == 0 {
		return // the problem of the target is reported already
	}
	like, class := sources[0], v.StorageClass
	for _, c := range sources {
		if class == "" && className(&c) != className(&like) {
			g.Fail(path, "storageClass",
				"the sources are of several StorageClasses, so that the new volume's must be given")
			return
		}
		if _, static := g.static[c.Name]; static && class == "" {
			g.Fail(path, "storageClass", "the source is of no StorageClass, so that the new volume's must be given")
			return
		}
		if c.Spec.Resources.Requests.Storage().Cmp(*like.Spec.Resources.Requests.Storage()) < 0 {
			like = c // the smallest source: engines raise the size to that of the actual source
		}
	}
	if class == "" {
		class = className(&like)
	}
	size := like.Spec.Resources.Requests[corev1.ResourceStorage]
	if v.Size != nil {
		size = *v.Size
		bytesOf(g.Report, path+".size", v.Size)
	}
	at := g.OrParent(path, "storageClass")
	sc, ok := g.classes.volumes(at, class)
	if !ok {
		return
	}
	if of := g.drivers(sources); g.classes.cluster && sc.Provisioner != "" && len(of) > 0 && !of[sc.Provisioner] {
		g.Fail(at, "a copy is made by the driver that has the source",
			"StorageClass %q is of driver %s, the source is of %s",
			sc.Name, sc.Provisioner, strings.Join(sortedKeys(of), " and "))
		return
	}
	claim := newClaim(sc.Name, size)
	claim.Spec.AccessModes, claim.Spec.VolumeMode = like.Spec.AccessModes, like.Spec.VolumeMode
	if len(v.AccessModes) > 0 {
		claim.Spec.AccessModes = accessModes(v.AccessModes)
	}
	if v.VolumeMode != "" {
		mode := corev1.PersistentVolumeMode(v.VolumeMode)
		claim.Spec.VolumeMode = &mode
	}
	claimFeatures(g, path, &claim)
	makesVolume(g, n, path, engine.Volume{Claim: claim, Attach: v.Attach})
}
