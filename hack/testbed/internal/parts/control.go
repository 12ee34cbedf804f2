package parts

import (
	"fmt"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/settings"
)

// controlPlane is the nice value of what elsewhere has a machine of its own. Here
// a dozen controllers wake with each event, and it would wait for a CPU behind
// those that it has just told.
const controlPlane = -10

// seldomCollected lets garbage grow to several times what lives. A collection of the
// API server's takes as long as several requests, and here half of all CPUs.
var seldomCollected = []string{"GOGC=800"}

func (b builder) etcd() Part {
	client := fmt.Sprintf("http://127.0.0.1:%d", settings.EtcdPort)
	peer := fmt.Sprintf("http://127.0.0.1:%d", settings.EtcdPort+1)
	return Part{
		Name: "etcd", Stage: Storage, Nice: controlPlane, Health: Health{URL: client + "/health"},
		Argv: []string{"etcd", "--name=testbed", "--data-dir=" + b.l.Path("etcd"),
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=testbed=" + peer,
			"--quota-backend-bytes=4294967296", "--log-level=warn"},
	}
}

// auditPolicy keeps writes, by their end only. The resources that a benchmark's milestones are about are kept with
// their
// content by default, so that a stamp can be given to a transition (a claim became bound) and not merely to a write.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
  - level: None
    verbs: [get, list, watch]
  - level: None
    resources:
      - {group: coordination.k8s.io, resources: [leases]}
      - {group: "", resources: [events, nodes/status]}
      - {group: events.k8s.io, resources: [events]}
      - {group: authentication.k8s.io}
      - {group: authorization.k8s.io}
  - level: %s
    resources:
      - {group: "", resources: [pods, pods/status, pods/binding, persistentvolumeclaims, persistentvolumeclaims/status, persistentvolumes, persistentvolumes/status]}
      - {group: storage.k8s.io, resources: [volumeattachments, volumeattachments/status]}
      - {group: snapshot.storage.k8s.io}
      - {group: groupsnapshot.storage.k8s.io}
      - {group: objectstorage.k8s.io}
  - level: Metadata
`

func (b builder) apiserver() Part {
	policy := b.l.Path("etc", "audit-policy.yaml")
	return Part{
		Name: "apiserver", Stage: API, Nice: controlPlane, Env: seldomCollected, Health: Health{URL: settings.Server() +
			"/readyz"},
		Files: map[string]string{policy: fmt.Sprintf(auditPolicy, b.s.AuditLevel)},
		Argv: []string{"kube-apiserver",
			fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", settings.EtcdPort),
			"--bind-address=" + settings.Host, "--advertise-address=" + settings.Host, fmt.Sprintf("--secure-port=%d",
				settings.APIPort),
			"--service-cluster-ip-range=" + settings.ServiceNet,
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + b.pki("sa.pub"), "--service-account-signing-key-file=" + b.pki("sa.key"),
			"--client-ca-file=" + b.pki("ca.crt"), "--tls-cert-file=" + b.pki("apiserver.crt"), "--tls-private-key-file=" + b.pki("apiserver.key"),
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged",
			"--kubelet-preferred-address-types=InternalIP", "--kubelet-certificate-authority=" + b.pki("ca.crt"),
			"--kubelet-client-certificate=" + b.pki("kubelet-client.crt"), "--kubelet-client-key=" + b.pki("kubelet-client.key"),
			// In batches: else the answer to each write waits until its line is written.
			"--audit-policy-file=" + policy, "--audit-log-path=" + b.l.Path("audit.log"), "--audit-log-maxsize=0", "--audit-log-mode=batch",
			"--audit-log-batch-max-wait=1s",
		},
	}
}

func (b builder) kcm() Part {
	return Part{
		Name: "kcm", Stage: Control, Health: Health{URL: "https://127.0.0.1:10257/healthz"},
		Argv: append([]string{"kube-controller-manager", "--kubeconfig=" + b.l.Kubeconfig("kcm"),
			"--bind-address=127.0.0.1", "--leader-elect=false", "--use-service-account-credentials",
			"--service-account-private-key-file=" + b.pki("sa.key"), "--root-ca-file=" + b.pki("ca.crt"),
		}, b.qps("kcm")...),
	}
}

func (b builder) scheduler() Part {
	path, l := b.l.Path("etc", "scheduler.yaml"), b.s.Limits["scheduler"]
	config := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: "%s", qps: %g, burst: %d}
`, b.l.Kubeconfig("scheduler"), l.QPS, l.Burst)
	return Part{
		Name: "scheduler", Stage: Control, Health: Health{URL: "https://127.0.0.1:10259/healthz"},
		Files: map[string]string{path: config},
		Argv:  []string{"kube-scheduler", "--config=" + path, "--bind-address=127.0.0.1"},
	}
}

func (b builder) dns() Part {
	return Part{
		Name: "dns", Stage: Services,
		Argv: []string{"testbed", "dns", "--pki=" + b.l.Path("pki"), "--listen=" + settings.ClusterDNS + ":53"},
	}
}
