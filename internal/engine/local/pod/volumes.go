package pod

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/agent/sandbox"
	"github.com/cnsbench/cnsbench/internal/op"
)

// memoryDir is the host's tmpfs for emptyDirs in memory: it needs no mount and no privileges, and all
// containers of a pod can share it.
const memoryDir = "/dev/shm"

// volumes creates or finds the pod's volumes.
func (p *planner) volumes(h *Host) map[string]source {
	all := map[string]source{}
	for _, v := range p.Pod.Spec.Volumes {
		s, err := p.volume(h, v)
		if err != nil {
			p.problem("volume %s: %v", v.Name, err)
			continue
		}
		all[v.Name] = s
	}
	return all
}

func (p *planner) volume(h *Host, v corev1.Volume) (source, error) {
	switch {
	case v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory:
		return p.memory(h, v.Name)
	case v.EmptyDir != nil:
		dir := p.dir("empty", v.Name)
		return source{path: dir}, os.Chmod(dir, 0o777)
	case v.ConfigMap != nil:
		return p.configMap(v)
	case v.PersistentVolumeClaim != nil:
		s, err := p.claim(v.PersistentVolumeClaim.ClaimName)
		s.readOnly = s.readOnly || v.PersistentVolumeClaim.ReadOnly
		return s, err
	case v.Ephemeral != nil:
		return p.claim(p.Pod.Name + "-" + v.Name)
	case v.HostPath != nil:
		return hostPath(v.HostPath)
	}
	return source{}, fmt.Errorf("only emptyDir, configMap, persistentVolumeClaim, ephemeral and hostPath are supported by engine local")
}

// claim returns a claim that the engine has published.
func (p *planner) claim(name string) (source, error) {
	c, ok := p.Claims[name]
	if !ok {
		return source{}, fmt.Errorf("claim %q not found", name)
	}
	if c.Device != "" {
		return source{path: c.Device, device: true, readOnly: c.ReadOnly, claim: name, canaries: map[int]bool{}}, nil
	}
	return source{path: c.Path, readOnly: c.ReadOnly, claim: name, canaries: map[int]bool{}}, nil
}

// memory creates an emptyDir in memory.
func (p *planner) memory(h *Host, name string) (source, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(memoryDir, &st); err != nil || st.Type != unix.TMPFS_MAGIC {
		return source{}, fmt.Errorf("emptyDir in memory: %s is not a tmpfs here", memoryDir)
	}
	// Named after the pod's directory, which is unique among running pods.
	dir := MemoryDir(filepath.Join(p.Dir, name))
	if err := h.Ledger.Add(op.LedgerEntry{Kind: DirKind, Name: dir}); err != nil {
		return source{}, err
	}
	p.plan.shared = append(p.plan.shared, dir)
	if err := os.Mkdir(dir, 0o777); err != nil {
		return source{}, err
	}
	return source{path: dir}, os.Chmod(dir, 0o777)
}

// MemoryDir returns the path in memory of a pod's directory.
func MemoryDir(dir string) string {
	return filepath.Join(memoryDir, "cnsbench"+strings.ReplaceAll(dir, "/", "-"))
}

// hostPath returns an existing path; nothing is created on the host.
func hostPath(v *corev1.HostPathVolumeSource) (source, error) {
	fi, err := os.Stat(v.Path)
	if err != nil {
		return source{}, fmt.Errorf("hostPath: %w (engine local does not create it)", err)
	}
	kind := corev1.HostPathUnset
	if v.Type != nil {
		kind = *v.Type
	}
	fits := map[corev1.HostPathType]bool{
		corev1.HostPathUnset:             true,
		corev1.HostPathDirectory:         fi.IsDir(),
		corev1.HostPathDirectoryOrCreate: fi.IsDir(),
		corev1.HostPathFile:              fi.Mode().IsRegular(),
		corev1.HostPathFileOrCreate:      fi.Mode().IsRegular(),
	}
	if !fits[kind] {
		return source{}, fmt.Errorf("hostPath %s is not of type %s, or that type is not supported by engine local",
			v.Path, kind)
	}
	return source{path: v.Path}, nil
}

// configMap writes the files of a ConfigMap volume.
func (p *planner) configMap(v corev1.Volume) (source, error) {
	ref := v.ConfigMap
	cm, ok := p.ConfigMaps[ref.Name]
	if !ok && !isTrue(ref.Optional) {
		return source{}, fmt.Errorf("ConfigMap %q not found", ref.Name)
	}
	root, err := os.OpenRoot(p.dir("configmap", v.Name))
	if err != nil {
		return source{}, err
	}
	defer root.Close()
	items := ref.Items
	if len(items) == 0 {
		for key := range cm.Data {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
		for key := range cm.BinaryData {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		content, ok := content(cm, item.Key)
		if !ok && !isTrue(ref.Optional) {
			return source{}, fmt.Errorf("ConfigMap %q has no key %q", ref.Name, item.Key)
		}
		if !ok {
			continue
		}
		mode := int32(0o644)
		for _, m := range []*int32{ref.DefaultMode, item.Mode} {
			if m != nil {
				mode = *m
			}
		}
		if err := writeFile(root, item.Path, content, os.FileMode(mode)); err != nil {
			return source{}, fmt.Errorf("ConfigMap %q, key %q: %w", ref.Name, item.Key, err)
		}
	}
	return source{path: root.Name(), readOnly: true}, nil
}

func content(cm corev1.ConfigMap, key string) ([]byte, bool) {
	if text, ok := cm.Data[key]; ok {
		return []byte(text), true
	}
	b, ok := cm.BinaryData[key]
	return b, ok
}

// writeFile writes one file beneath root; a path that leads out of it is an error.
func writeFile(root *os.Root, path string, content []byte, mode os.FileMode) error {
	if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := root.WriteFile(path, content, 0o600); err != nil {
		return err
	}
	return root.Chmod(path, mode&os.ModePerm)
}

// mounts resolves a container's mounts; /tmp and /var/tmp are private.
func (p *planner) mounts(c *corev1.Container) []sandbox.Mount {
	var all []sandbox.Mount
	taken := map[string]bool{}
	add := func(m sandbox.Mount) {
		m.Target = filepath.Clean(m.Target)
		if taken[m.Target] {
			p.problem("container %s: two volumes at %s", c.Name, m.Target)
		}
		taken[m.Target] = true
		all = append(all, m)
	}
	for _, m := range c.VolumeMounts {
		src, ok := p.sources[m.Name]
		switch {
		case !ok:
			p.undefined(c.Name, m.Name)
		case src.device:
			p.problem("container %s: volume %s is a block device: use volumeDevices", c.Name, m.Name)
		case m.SubPathExpr != "":
			p.problem("container %s: subPathExpr is not supported by engine local", c.Name)
		default:
			path, err := subPath(src, m.SubPath)
			if err != nil {
				p.problem("container %s: subPath %q of volume %s: %v", c.Name, m.SubPath, m.Name, err)
			}
			add(sandbox.Mount{Source: path, Target: m.MountPath, ReadOnly: m.ReadOnly || src.readOnly})
		}
	}
	for _, d := range c.VolumeDevices {
		src, ok := p.sources[d.Name]
		switch {
		case !ok:
			p.undefined(c.Name, d.Name)
		case !src.device:
			p.problem("container %s: volume %s is not a block device: use volumeMounts", c.Name, d.Name)
		default:
			add(sandbox.Mount{Source: src.path, Target: d.DevicePath})
		}
	}
	for _, private := range []string{"/tmp", "/var/tmp"} {
		if !taken[private] {
			dir := p.dir("tmp", c.Name+strings.ReplaceAll(private, "/", "-"))
			if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
				p.problem("%v", err)
			}
			add(sandbox.Mount{Source: dir, Target: private})
		}
	}
	if dir := filepath.Clean(c.WorkingDir); c.WorkingDir != "" && dir != "/" && !taken[dir] {
		all = append(all, sandbox.Mount{Target: dir})
	}
	return all
}

// undefined reports a volume that the pod does not define; a defined one has had its problem reported.
func (p *planner) undefined(container, volume string) {
	for _, v := range p.Pod.Spec.Volumes {
		if v.Name == volume {
			return
		}
	}
	p.problem("container %s: the pod has no volume %q", container, volume)
}

// subPath returns a path in a volume, created as a directory if it is missing (as the kubelet does).
func subPath(src source, sub string) (string, error) {
	if sub == "" {
		return src.path, nil
	}
	root, err := os.OpenRoot(src.path)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if _, err := root.Stat(sub); os.IsNotExist(err) {
		err = root.MkdirAll(sub, 0o755)
		if err != nil {
			return "", err
		}
	} else if err != nil {
		return "", err
	}
	return filepath.Join(src.path, sub), nil
}
