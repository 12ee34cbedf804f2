package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// maxSize is the largest accepted volume size: 1 PiB.
const maxSize = int64(1) << 50

// checkClaims checks the volumes of a workload. A problem with a class or size that a
// variable sets is reported at the place of the variable.
func checkClaims(g *graph, path string, given variant, claims []corev1.PersistentVolumeClaim) {
	for i := range claims {
		c := &claims[i]
		at := func(value string) string {
			for k, v := range given.given {
				if v == value && value != "" {
					return given.paths[k]
				}
			}
			return path + ".workload"
		}
		class := ""
		if c.Spec.StorageClassName != nil {
			class = *c.Spec.StorageClassName
		}
		none := g.classes.cluster && c.Spec.StorageClassName != nil && class == "" // static binding to an existing volume
		if sc, ok := g.classes.volumes(at(class), class); !none && ok && sc.Name != "" {
			c.Spec.StorageClassName = &sc.Name
		}
		size := c.Spec.Resources.Requests[corev1.ResourceStorage]
		bytesOf(g.Report, at(size.String()), &size)
		claimFeatures(g, path+".workload", c)
	}
}

// claimFeatures records the engine features that a volume requires.
func claimFeatures(g *graph, path string, c *corev1.PersistentVolumeClaim) {
	if c.Spec.VolumeMode != nil && *c.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		g.need(path, "block")
		g.lacking(g.OrParent(path, "volumeMode"), []corev1.PersistentVolumeClaim{*c}, canBlock)
	}
	if slices.Contains(c.Spec.AccessModes, corev1.ReadWriteMany) ||
		slices.Contains(c.Spec.AccessModes, corev1.ReadOnlyMany) {
		g.need(path, "rwx")
	}
}

// bytesOf returns the value of a quantity in bytes. It returns 0 for nil and for a size
// that it reports as invalid. A whole size below 1Mi gives a warning.
func bytesOf(report *parse.Report, path string, q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	switch v := q.Value(); {
	case v <= 0:
		report.Fail(path, "such as 512Mi or 10Gi", "a size of %s is not more than 0", q.String())
	case v > maxSize:
		report.Fail(path, "no more than 1Pi", "a size of %s is too large", q.String())
	case v < 1<<20 && q.MilliValue()%1000 != 0:
		report.Fail(path, "such as 64Mi; the unit m is a thousandth", "a size of %s is not a whole number of bytes",
			q.String())
	case v < 1<<20:
		report.Warn(path, "Ki, Mi and Gi are the units; a bare number is bytes",
			"a size of %s is less than 1Mi", q.String())
		return v
	default:
		return v
	}
	return 0
}

// drivers returns the drivers of the claims' StorageClasses and of static volumes, as
// far as they are known.
func (g *graph) drivers(claims []corev1.PersistentVolumeClaim) map[string]bool {
	drivers := map[string]bool{}
	for i := range claims {
		if sc, ok := g.classes.of(&claims[i]); ok {
			drivers[sc.Provisioner] = true
		}
		drivers[g.static[claims[i].Name]] = true
	}
	delete(drivers, "")
	return drivers
}

// lacking reports a problem if a built-in driver of the claims lacks a feature.
func (g *graph) lacking(path string, claims []corev1.PersistentVolumeClaim, what string) {
	for _, driver := range sortedKeys(g.drivers(claims)) {
		if _, external := g.classes.endpoints[driver]; external {
			continue // its capabilities are asked for
		}
		if !lacks[driver][what] {
			if !g.classes.cluster || !lacksOnCluster[driver][what] {
				continue
			}
			what += " on a cluster"
		}
		hint := "loopfile can do it"
		for _, of := range sortedKeys(g.in.Substitute) {
			if g.in.Substitute[of] == driver && g.classes.said[of] {
				hint = fmt.Sprintf("it stands in for %s: %s", strings.TrimSuffix(of, driverSuffix),
					g.in.SubstituteReason)
			}
		}
		g.Fail(path, hint, "%s %s", strings.TrimSuffix(driver, driverSuffix), what)
		return
	}
}

// named returns a pointer to a class name, or nil if the name is empty: in a claim,
// nil selects the cluster's default class.
func named(name string) *string {
	if name == "" {
		return nil
	}
	return &name
}

func newClaim(class string, size resource.Quantity) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: named(class),
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
}
