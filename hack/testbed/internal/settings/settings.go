package settings

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits are what a client of the API server is held to. A zero field leaves the part's own default.
type Limits struct {
	QPS     float64
	Burst   int
	Workers int
	Timeout time.Duration // of a CSI call
}

// Settings are all that `up` and `restart` can be told. They are kept in the state folder, so that a restart of one
// part
// changes what it is told to and nothing else.
type Settings struct {
	// Limits by the name in the flags: provisioner, attacher, resizer, snapshotter, snapshot-controller, cosi, kcm,
	// scheduler, kubelet.
	Limits map[string]Limits
	// Extra are further arguments by part.
	Extra map[string][]string
	// AuditLevel of writes to pods, volumes and snapshots; other writes are kept as Metadata.
	AuditLevel string
	// NodeStatus is how often a kubelet reports, and with that how soon volumesInUse is true.
	NodeStatus time.Duration
	// KubeletSync is how often a kubelet looks at a pod again without a reason, and with that how late it sees that a
	// volume
	// has to grow on the node. Kubernetes' default is a minute.
	KubeletSync time.Duration
	// ProxyMode is kube-proxy's: iptables or nftables.
	ProxyMode string
	// PoolSize of the drivers that keep a pool image.
	PoolSize string
	// Seed of the faults that drivers inject.
	Seed uint64
}

// limited lists who has limits, and which of them: Q for QPS and burst, W for workers, T for timeout.
var limited = []struct{ name, has, what string }{
	{"provisioner", "QWT", "csi-provisioner"},
	{"attacher", "QWT", "csi-attacher"},
	{"resizer", "QWT", "csi-resizer"},
	{"snapshotter", "QWT", "csi-snapshotter"},
	{"snapshot-controller", "QW", "snapshot-controller"},
	{"cosi", "Q", "COSI's controller and sidecar"},
	{"kcm", "Q", "kube-controller-manager"},
	{"scheduler", "Q", "kube-scheduler"},
	{"kubelet", "Q", "each kubelet"},
}

// Sidecars are those that stand before each driver and that --sidecar-* sets at once.
func Sidecars() []string { return []string{"provisioner", "attacher", "resizer", "snapshotter"} }

// Defaults has high request limits, so that they are not what is measured, and upstream's workers and timeouts.
func Defaults() Settings {
	s := Settings{Limits: map[string]Limits{}, Extra: map[string][]string{}, AuditLevel: "RequestResponse",
		NodeStatus: time.Second, KubeletSync: 10 * time.Second, ProxyMode: "iptables", PoolSize: "32Gi"}
	for _, l := range limited {
		s.Limits[l.name] = Limits{QPS: 500, Burst: 1000}
	}
	return s
}

// Parse changes the settings as the flags say and returns the other arguments. Flags may stand before, between and
// after those. Of two flags that set the same, the later counts.
func (s *Settings) Parse(command string, args []string) ([]string, error) {
	f := s.flags(command)
	var rest []string
	for {
		if err := f.Parse(args); err != nil {
			return nil, err
		}
		if f.NArg() == 0 {
			return rest, s.check()
		}
		rest = append(rest, f.Arg(0))
		args = f.Args()[1:]
	}
}

func (s *Settings) flags(command string) *flag.FlagSet {
	f := flag.NewFlagSet(command, flag.ContinueOnError)
	for _, l := range limited {
		s.limitFlags(f, l.name, l.has, l.what, []string{l.name})
	}
	s.limitFlags(f, "sidecar", "QWT", "the four sidecars of every driver", Sidecars())
	f.StringVar(&s.AuditLevel, "audit-level", s.AuditLevel,
		"audit level of writes to pods, volumes and snapshots: Metadata, Request, RequestResponse")
	f.DurationVar(&s.NodeStatus, "node-status", s.NodeStatus, "how often a kubelet reports its node's status")
	f.DurationVar(&s.KubeletSync, "kubelet-sync", s.KubeletSync,
		"how often a kubelet looks at each pod again: volumes grow on the node no sooner")
	f.StringVar(&s.ProxyMode, "proxy-mode", s.ProxyMode, "kube-proxy's mode: iptables, nftables")
	f.StringVar(&s.PoolSize, "pool-size", s.PoolSize, "size of the drivers' sparse pool images")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "seed of the faults that drivers inject")
	f.Func("arg", "a further argument of a part: PART=ARGUMENT, e.g. kcm=--node-monitor-grace-period=20s; repeatable",
		func(text string) error {
			part, arg, ok := strings.Cut(text, "=")
			if !ok || part == "" || arg == "" {
				return fmt.Errorf("%q is not PART=ARGUMENT", text)
			}
			s.Extra[part] = append(s.Extra[part], arg)
			return nil
		})
	return f
}

// limitFlags adds the flags of a name that set the limits of some parts.
func (s *Settings) limitFlags(f *flag.FlagSet, name, has, what string, of []string) {
	each := func(set func(*Limits)) {
		for _, n := range of {
			l := s.Limits[n]
			set(&l)
			s.Limits[n] = l
		}
	}
	f.Func(name+"-qps", "API requests a second of "+what+" (default 500)", func(text string) error {
		v, err := strconv.ParseFloat(text, 64)
		each(func(l *Limits) { l.QPS = v })
		return err
	})
	f.Func(name+"-burst", "API requests at once of "+what+" (default 1000)", func(text string) error {
		v, err := strconv.Atoi(text)
		each(func(l *Limits) { l.Burst = v })
		return err
	})
	if strings.Contains(has, "W") {
		f.Func(name+"-workers", "worker threads of "+what+" (default: upstream's)", func(text string) error {
			v, err := strconv.Atoi(text)
			each(func(l *Limits) { l.Workers = v })
			return err
		})
	}
	if strings.Contains(has, "T") {
		f.Func(name+"-timeout", "timeout of a CSI call of "+what+" (default: upstream's)", func(text string) error {
			v, err := time.ParseDuration(text)
			each(func(l *Limits) { l.Timeout = v })
			return err
		})
	}
}

func (s *Settings) check() error {
	if !slices.Contains([]string{"Metadata", "Request", "RequestResponse"}, s.AuditLevel) {
		return fmt.Errorf("--audit-level %q: there are Metadata, Request, RequestResponse", s.AuditLevel)
	}
	if !slices.Contains([]string{"iptables", "nftables"}, s.ProxyMode) {
		return fmt.Errorf("--proxy-mode %q: there are iptables, nftables", s.ProxyMode)
	}
	for _, l := range limited {
		if v := s.Limits[l.name]; v.QPS <= 0 || v.Burst <= 0 || v.Workers < 0 || v.Timeout < 0 {
			return fmt.Errorf("the limits of %s are out of range: %+v", l.name, v)
		}
	}
	if s.NodeStatus < 100*time.Millisecond || s.KubeletSync < time.Second {
		return fmt.Errorf("--node-status %v is less than 100ms, or --kubelet-sync %v less than 1s", s.NodeStatus,
			s.KubeletSync)
	}
	return nil
}
