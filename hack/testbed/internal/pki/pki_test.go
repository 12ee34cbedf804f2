package pki

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestIssue(t *testing.T) {
	dir := t.TempDir()
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := Identity{Name: "apiserver", CN: "kube-apiserver", Addrs: []string{"10.99.0.1"},
		Names: []string{"kubernetes"}}
	client := Identity{Name: "admin", CN: "admin", Groups: []string{"system:masters"}}
	for _, id := range []Identity{server, client} {
		if err := a.Issue(id); err != nil {
			t.Fatal(err)
		}
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(again.cert)
	verify := func(name, host string, usage x509.ExtKeyUsage) error {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: pool, KeyUsages: []x509.ExtKeyUsage{usage}})
		return err
	}
	for _, host := range []string{"10.99.0.1", "kubernetes"} {
		if err := verify("apiserver", host, x509.ExtKeyUsageServerAuth); err != nil {
			t.Errorf("the server's certificate for %s: %v", host, err)
		}
	}
	if err := verify("apiserver", "10.0.0.9", x509.ExtKeyUsageServerAuth); err == nil {
		t.Error("the server's certificate serves any address")
	}
	if err := verify("admin", "", x509.ExtKeyUsageClientAuth); err != nil {
		t.Errorf("the client's certificate: %v", err)
	}
	if err := verify("admin", "", x509.ExtKeyUsageServerAuth); err == nil {
		t.Error("a client's certificate can serve")
	}
}

func TestIssueKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "admin.kubeconfig")
	var texts [2]string
	for i := range texts {
		a, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Issue(Identity{Name: "admin", CN: "admin"}); err != nil {
			t.Fatal(err)
		}
		if err := a.ServiceAccountKeys(); err != nil {
			t.Fatal(err)
		}
		if err := a.Kubeconfig(path, "https://10.99.0.1:6443", "admin"); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	if texts[0] != texts[1] {
		t.Error("opening the folder again makes other certificates")
	}
	if strings.Contains(texts[0], dir) {
		t.Error("the kubeconfig names files: it does not work from anywhere")
	}
}
