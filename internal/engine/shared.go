package engine

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// SharedClaim is a claim that several pods of an instance use and that only one node at a time may attach.
type SharedClaim struct {
	Claim *corev1.PersistentVolumeClaim
	Pods  []string
}

// SharedClaims lists those of an instance, in the order of its claims.
func SharedClaims(claims []corev1.PersistentVolumeClaim, pods []Pod) []SharedClaim {
	var list []SharedClaim
	for i := range claims {
		s := SharedClaim{Claim: &claims[i]}
		if isMultiNode(s.Claim) {
			continue
		}
		for j := range pods {
			if mountsClaim(&pods[j], s.Claim.Name) {
				s.Pods = append(s.Pods, pods[j].Name)
			}
		}
		if len(s.Pods) > 1 {
			list = append(list, s)
		}
	}
	return list
}

func isMultiNode(c *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(c.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
		return m == corev1.ReadWriteMany || m == corev1.ReadOnlyMany
	})
}

func mountsClaim(p *Pod, claim string) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}
