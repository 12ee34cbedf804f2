package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Versity is a versitygw on a directory: a server of S3 that checks signatures.
type Versity struct {
	group
	Address     string // http://…
	Data        string // a directory below it is a bucket
	AccessLog   string // file with a line for each answered request
	Certificate        // with TLS
}

// The account's keys.
const (
	VersityKey    = "test"
	VersitySecret = "secret"
)

// VersityDomain is what stands behind buckets in names of hosts.
const VersityDomain = "127.0.0.1"

// StartVersity starts the versitygw of the repository's out/servers, which
// make object-servers builds at the version in hack/servers.
func StartVersity(ctx context.Context, dir string) (*Versity, error) {
	return startVersity(ctx, dir, false, "")
}

// StartVersityTLS is the same with TLS.
func StartVersityTLS(ctx context.Context, dir string) (*Versity, error) {
	return startVersity(ctx, dir, true, "")
}

// StartVersityHosts is one that takes buckets from before its name, which is
// VersityDomain, as part of the host's.
func StartVersityHosts(ctx context.Context, dir string) (*Versity, error) {
	return startVersity(ctx, dir, false, VersityDomain)
}

// Peer starts another versitygw with the same buckets. Its own files are in dir.
func (s *Versity) Peer(ctx context.Context, dir string) (*Versity, error) {
	return serveVersity(ctx, dir, s.Data, false, "")
}

func startVersity(ctx context.Context, dir string, secure bool, domain string) (*Versity, error) {
	data := filepath.Join(dir, "data")
	if err := errors.Join(os.Mkdir(data, 0o755), os.Mkdir(filepath.Join(dir, "meta"), 0o755),
		os.Mkdir(filepath.Join(dir, "versions"), 0o755)); err != nil {
		return nil, err
	}
	return serveVersity(ctx, dir, data, secure, domain)
}

// serveVersity serves the buckets in data, whose metadata are in meta and versions beside it.
func serveVersity(ctx context.Context, dir, data string, secure bool, domain string) (*Versity, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	program := filepath.Join(root, "out", "servers", "versitygw")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("versitygw %w: run make object-servers", ErrMissing)
	}
	s := &Versity{group: group{dir: dir}, Data: data, AccessLog: filepath.Join(dir, "access.log")}
	meta, versions := filepath.Join(filepath.Dir(data), "meta"), filepath.Join(filepath.Dir(data), "versions")
	p, err := Ports(1)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", p[0])
	s.Address = "http://" + address
	args := []string{"--port", address, "--quiet", "--access-log", s.AccessLog}
	if domain != "" {
		args = append(args, "--virtual-domain", domain)
	}
	if secure {
		if s.Certificate, err = newCertificate(dir); err != nil {
			return nil, err
		}
		s.Address = "https://" + address
		args = append(args, "--cert", s.Cert, "--key", s.Key)
	}
	err = s.start("versitygw", []string{"ROOT_ACCESS_KEY=" + VersityKey, "ROOT_SECRET_KEY=" + VersitySecret}, program,
		append(args, "posix", "--sidecar", meta, "--versioning-dir", versions, s.Data)...)
	if err == nil {
		err = s.await(ctx, "versitygw", address)
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Requests counts those that the server has answered with success, by operation such as s3_GetObject, of objects whose
// key begins with prefix.
func (s *Versity) Requests(prefix string) (map[string]int, error) {
	text, err := os.ReadFile(s.AccessLog)
	if err != nil {
		return nil, err
	}
	n := map[string]int{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line) // owner bucket [time zone] address requester id operation key path status …
		if len(f) > 10 && strings.HasPrefix(f[8], prefix) && strings.HasPrefix(f[10], "2") {
			n[f[7]]++
		}
	}
	return n, nil
}

// repository is the directory of this repository, from the working directory
// upwards.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "hack", "servers", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the working directory is not in the repository")
		}
	}
}
