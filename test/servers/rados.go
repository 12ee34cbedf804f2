package servers

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Rados is a RADOS gateway, of Debian's packages of Ceph, before a cluster of
// one monitor and one OSD that keeps everything in memory.
type Rados struct {
	group
	Address string // of S3; its account is that of Versity
}

// StartRados starts one. It takes the better part of a minute.
func StartRados(ctx context.Context, dir string) (*Rados, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("a RADOS gateway %w: Ceph's servers want root", ErrMissing)
	}
	if err := needs("a RADOS gateway", "ceph", "ceph-mon", "ceph-osd", "monmaptool", "radosgw",
		"radosgw-admin"); err != nil {
		return nil, err
	}
	free, err := Ports(2)
	if err != nil {
		return nil, err
	}
	r := &Rados{group: group{dir: dir}, Address: fmt.Sprintf("http://127.0.0.1:%d", free[1])}
	if err = r.configure(free[0]); err == nil {
		err = r.cluster(ctx, free[0])
	}
	if err == nil {
		err = r.gateway(ctx, free[1])
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, r.Logs())
		r.Stop()
		return nil, err
	}
	return r, nil
}

// cephID is the identity of the cluster; one on loopback needs no other.
const cephID = "c0de0000-0000-4000-8000-000000000001"

func (r *Rados) configure(mon int) error {
	for _, d := range []string{"osd", "run", "crash"} {
		if err := os.Mkdir(filepath.Join(r.dir, d), 0o755); err != nil {
			return err
		}
	}
	return r.write("ceph.conf", `[global]
fsid = %[1]s
mon_host = v2:127.0.0.1:%[2]d/0
mon_initial_members = a
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_mon_client_mode = crc
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pgp_num = 4
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 1000
osd_crush_chooseleaf_type = 0
osd_objectstore = memstore
memstore_device_bytes = 2147483648
mon_data = %[3]s/mon
mon_data_avail_crit = 1
osd_data = %[3]s/osd
run_dir = %[3]s/run
admin_socket = %[3]s/run/$name.asok
pid_file = %[3]s/run/$name.pid
crash_dir = %[3]s/crash
log_file =
log_to_stderr = true
`, cephID, mon, r.dir)
}

// ceph runs one of Ceph's programs to its end.
func (r *Rados) ceph(ctx context.Context, program string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program, append([]string{"-c", filepath.Join(r.dir, "ceph.conf")}, args...)...)
	c.Dir = r.dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", program, args, err, out[max(0, len(out)-2000):])
	}
	return nil
}

func (r *Rados) cluster(ctx context.Context, mon int) error {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	osd, conf := fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), filepath.Join(r.dir,
		"ceph.conf")
	err := r.ceph(ctx, "monmaptool", "--create", "--addv", "a", fmt.Sprintf("[v2:127.0.0.1:%d/0]", mon), "--fsid",
		cephID, "monmap")
	if err == nil {
		err = r.ceph(ctx, "ceph-mon", "--mkfs", "-i", "a", "--monmap", "monmap")
	}
	if err == nil {
		err = r.start("mon", nil, "ceph-mon", "-i", "a", "-c", conf, "-f")
	}
	if err == nil {
		err = r.ceph(ctx, "ceph", "osd", "new", osd)
	}
	if err == nil {
		err = r.ceph(ctx, "ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd)
	}
	if err == nil {
		err = r.start("osd", nil, "ceph-osd", "-i", "0", "-c", conf, "-f")
	}
	if err == nil {
		err = r.ceph(ctx, "ceph", "osd", "crush", "add", "osd.0", "1", "host=h", "root=default")
	}
	return err
}

func (r *Rados) gateway(ctx context.Context, port int) error {
	err := r.ceph(ctx, "radosgw-admin", "-n", "client.rgw", "user", "create", "--uid=test", "--display-name=test",
		"--access-key="+VersityKey, "--secret-key="+VersitySecret)
	if err == nil {
		err = r.start("radosgw", nil, "radosgw", "-f", "-c", filepath.Join(r.dir, "ceph.conf"), "-n", "client.rgw",
			fmt.Sprintf("--rgw_frontends=beast endpoint=127.0.0.1:%d", port),
			"--rgw_crypt_require_ssl=false") // it is on loopback
	}
	if err == nil {
		err = r.await(ctx, "radosgw", fmt.Sprintf("127.0.0.1:%d", port))
	}
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Address, nil)
	if err != nil {
		return err
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	return a.Body.Close()
}
