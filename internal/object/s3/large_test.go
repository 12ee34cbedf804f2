//go:build measurement

package s3

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/test/servers"
)

// An object of 6 GB, more than one PUT may have, is written in parts in flight together and read by ranges, in 64 MB of
// memory. The server is a process of its own.
func TestLargeObjectInLittleMemory(t *testing.T) {
	const size, part, limit = int64(6_000_001_024), int64(64 << 20), 64e6
	v := servers.ForTest(t, servers.StartVersity)
	s := open(t, map[string]string{"endpoint": v.Address, "timeout": "300000"},
		Credentials{AccessKey: servers.VersityKey, SecretKey: servers.VersitySecret})
	c, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	bucket, object := []byte("large"), []byte("six-gigabytes")
	must := func(r client.Request) client.Result {
		t.Helper()
		var res client.Result
		if c.Do(t.Context(), &r, &res); !res.OK() {
			t.Fatalf("verb %d: %s %s", r.Verb, res.Label(), res.Detail)
		}
		return res
	}
	must(client.Request{Verb: client.MakeContainer, Container: bucket})
	debug.FreeOSMemory()
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-tick.C:
				most = max(most, anonymous())
			case <-stop:
				peak <- most
				return
			}
		}
	}()
	began := time.Now()
	must(client.Request{Verb: client.PutParts, Container: bucket, Object: object, Size: size, PartSize: part,
		PartConcurrency: 4, Writer: 9})
	wrote := time.Since(began)
	read := int64(0)
	for offset := int64(0); offset < size; offset += part {
		res := must(client.Request{Verb: client.Get, Container: bucket, Object: object, Offset: offset,
			Length: min(part, size-offset), Verify: true})
		read += res.Bytes
	}
	close(stop)
	most := <-peak
	t.Logf("%d bytes written in %v and read by ranges in %v; at most %.1f MB of memory of this process", size, wrote,
		time.Since(began)-wrote, float64(most)/1e6)
	if read != size {
		t.Errorf("%d bytes read, want %d", read, size)
	}
	if most == 0 || float64(most) > limit {
		t.Errorf("%.1f MB of memory, want at most %.0f MB", float64(most)/1e6, limit/1e6)
	}
	must(client.Request{Verb: client.Delete, Container: bucket, Object: object})
	must(client.Request{Verb: client.RemoveContainer, Container: bucket})
}

// anonymous is this process's resident memory in bytes, without pages of files.
func anonymous() int64 {
	b, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb := int64(0)
			for _, d := range strings.Fields(rest)[0] {
				kb = kb*10 + int64(d-'0')
			}
			return kb * 1024
		}
	}
	return 0
}
