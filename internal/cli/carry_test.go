package cli

import (
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/plan"
)

func replaying(sources ...string) *plan.Plan {
	p := &plan.Plan{Benchmark: &v1alpha1.Benchmark{}}
	for _, s := range sources {
		r := v1alpha1.Rate{}
		if s != "" {
			r.TraceRateSpec = &v1alpha1.TraceRateSpec{Source: s}
		}
		p.Benchmark.Spec.Rates = append(p.Benchmark.Spec.Rates, r)
	}
	return p
}

// A runner's pod reads in its pieces what the Benchmark names beside it here.
func TestCarry(t *testing.T) {
	dir := t.TempDir()
	beside, absolute := filepath.Join(dir, "sub"), filepath.Join(dir, "one.csv")
	want := map[string][]byte{"a=b.csv.gz": make([]byte, 2*pieceSize+pieceSize/2), "../c.csv": []byte("short"), absolute: make([]byte, pieceSize)}
	if err := os.Mkdir(beside, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range want {
		_, _ = rand.Read(data[:len(data)/2]) // never fails
		at := name
		if name != absolute {
			at = filepath.Join(beside, name)
		}
		if err := os.WriteFile(at, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := carry(replaying("", "a=b.csv.gz", "../c.csv", absolute), filepath.Join(beside, "benchmark.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.pieces) != 3+1+1 {
		t.Fatalf("%d pieces", len(c.pieces))
	}

	// What the pod's volume makes of it.
	pod := &corev1.PodSpec{Containers: []corev1.Container{{}}}
	configs := []string{"0", "1", "2", "3", "4"}
	c.mount(pod, configs)
	root := t.TempDir()
	for i, source := range pod.Volumes[0].Projected.Sources {
		if source.ConfigMap.Name != configs[i] {
			t.Errorf("piece %d is sought in %s", i, source.ConfigMap.Name)
		}
		at := filepath.Join(root, source.ConfigMap.Items[0].Path)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, c.pieces[i].data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var flags []string
	for i := 1; i < len(c.flags); i += 2 {
		flags = append(flags, strings.Replace(c.flags[i], "="+pod.Containers[0].VolumeMounts[0].MountPath, "="+root, 1))
	}
	open, err := openCarried("/elsewhere/00.yaml", flags)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range want {
		f, err := open(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err != nil || f.Close() != nil || string(got) != string(data) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(data), err)
		}
	}
}

// More than a cluster should be asked to keep is refused, with what to do.
func TestCarryTooMuch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "long.csv")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for size, refused := range map[int64]bool{mostPieces * pieceSize: false, mostPieces*pieceSize + 1: true} {
		if err := os.Truncate(file, size); err != nil {
			t.Fatal(err)
		}
		_, err := carry(replaying(file), "-")
		if (err != nil) != refused {
			t.Errorf("%d bytes: %v", size, err)
		}
		if refused && !(strings.Contains(err.Error(), "long.csv") && strings.Contains(err.Error(), "16 MiB") && strings.Contains(err.Error(), "--runner local")) {
			t.Error(err)
		}
	}
}

func TestCarriedFlag(t *testing.T) {
	if _, err := openCarried("-", []string{"nothing"}); err == nil {
		t.Error("taken")
	}
}
