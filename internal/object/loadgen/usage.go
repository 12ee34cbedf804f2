package loadgen

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is what this process took of the machine.
type Usage struct {
	CPU time.Duration // user and system time
	// Waited is how long its threads were ready to run and had no CPU.
	Waited time.Duration
	Wall   time.Duration
	CPUs   int   // that it may use
	RSS    int64 // bytes of memory at the end
	at     time.Time
}

// UsageNow is the usage since the process began. Figures that cannot be read stay 0.
func UsageNow() Usage {
	u := Usage{CPUs: runtime.GOMAXPROCS(0), at: time.Now()}
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := strings.Fields(string(b)); len(f) > 1 {
			pages, _ := strconv.ParseInt(f[1], 10, 64)
			u.RSS = pages * int64(os.Getpagesize())
		}
	}
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) == nil {
		u.CPU = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	// schedstat: time on a CPU, time waiting for one, turns; in ns.
	files, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if fields := strings.Fields(string(b)); err == nil && len(fields) == 3 {
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			u.Waited += time.Duration(n)
		}
	}
	return u
}

func (u Usage) since(before Usage) Usage {
	return Usage{CPU: u.CPU - before.CPU, Waited: max(0, u.Waited-before.Waited), Wall: u.at.Sub(before.at),
		CPUs: u.CPUs, RSS: u.RSS}
}

// Busy is the share of its CPUs that the process used.
func (u Usage) Busy() float64 { return u.share(u.CPU) }

// Wanted is the share of its CPUs that the process used or waited for.
func (u Usage) Wanted() float64 { return u.share(u.CPU + u.Waited) }

func (u Usage) share(d time.Duration) float64 {
	if u.Wall <= 0 || u.CPUs < 1 {
		return 0
	}
	return d.Seconds() / u.Wall.Seconds() / float64(u.CPUs)
}
