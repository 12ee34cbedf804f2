package servers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// APIServer is an API server of Kubernetes with etcd and the garbage collector: no node, and no other controller.
type APIServer struct {
	group
	Kubeconfig string // of a user with all rights
}

// StartAPIServer starts the programs that make testbed-up has built, on loopback.
func StartAPIServer(ctx context.Context, dir string) (*APIServer, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	program := func(name string) string { return filepath.Join(root, "out", "testbed", "bin", name) }
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		if _, err := os.Stat(program(name)); err != nil {
			return nil, fmt.Errorf("%s %w: run make testbed-up once, which builds it", name, ErrMissing)
		}
	}
	p, err := Ports(4)
	if err != nil {
		return nil, err
	}
	s := &APIServer{group: group{dir: dir}, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	const token = "token-of-a-test"
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", p[0]), fmt.Sprintf("http://127.0.0.1:%d", p[1])
	err = errors.Join(
		writeKey(filepath.Join(dir, "sa.key")),
		s.write("tokens", "%s,admin,admin,system:masters\n", token),
		s.write("kubeconfig", "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: "+
			"{server: 'https://127.0.0.1:%d', insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: %s}}], "+
			"contexts: [{name: c, context: {cluster: c, user: u, namespace: default}}]}\n", p[2], token),
		s.start("etcd", nil, program("etcd"), "--data-dir="+filepath.Join(dir, "etcd"), "--log-level=warn",
			"--listen-client-urls="+client, "--advertise-client-urls="+client, "--listen-peer-urls="+peer,
			"--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer, "--unsafe-no-fsync"),
		s.start("kube-apiserver", nil, program("kube-apiserver"), "--etcd-servers="+client, "--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", p[2]), "--cert-dir="+dir, "--token-auth-file="+filepath.Join(dir, "tokens"),
			"--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount",
			"--service-cluster-ip-range=10.0.0.0/24", "--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file="+filepath.Join(dir, "sa.key"),
			"--service-account-signing-key-file="+filepath.Join(dir, "sa.key")),
	)
	if err == nil {
		err = s.await(ctx, "kube-apiserver", fmt.Sprintf("127.0.0.1:%d", p[2]))
	}
	if err == nil {
		err = s.start("kube-controller-manager", nil, program("kube-controller-manager"), "--kubeconfig="+s.Kubeconfig,
			"--leader-elect=false", "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", p[3]), "--cert-dir="+dir,
			"--controllers=garbage-collector-controller")
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func writeKey(file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}
