package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

const (
	// pageMemory limits the memory to render one bundle.
	pageMemory = 384 << 20
	// pageSeconds limits the CPU time.
	pageSeconds = 60
	// pageCommand is the command that a results service starts for each page.
	pageCommand = "show-in-bounds"
)

// renderApart renders a bundle in a process with limited memory and time, because its content is not trusted.
func renderApart(ctx context.Context, what, dir string, w io.Writer) error {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", pageCommand, what, dir)
	said := head{most: 16 << 10}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = w, &said, time.Second
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("rendering takes too long here: use cnsbench report, or show --cluster for a bundle in a cluster: %w",
			ctx.Err())
	}
	line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
	if strings.Contains(said.String(), "cannot allocate memory") || strings.Contains(said.String(), "out of memory") {
		line = "rendering takes too much memory: use cnsbench report, or show --cluster for a bundle in a cluster"
	}
	if cmd.ProcessState != nil && cmd.ProcessState.Exited() && line != "" {
		return errors.New(strings.TrimPrefix(line, "cnsbench: "))
	}
	return fmt.Errorf("%s (%w)", line, err)
}

// head keeps the beginning of what is written.
type head struct {
	strings.Builder
	most int
}

func (h *head) Write(b []byte) (int, error) {
	h.Builder.Write(b[:max(0, min(len(b), h.most-h.Len()))])
	return len(b), nil
}

// newPage is the command that renders a bundle with limited memory and time.
func newPage(s *streams) *cobra.Command {
	return &cobra.Command{
		Use: pageCommand + " report|summary|study DIR", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			debug.SetMemoryLimit(pageMemory * 3 / 4)
			err := errors.Join(
				unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: pageMemory, Max: pageMemory}),
				unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: pageSeconds, Max: pageSeconds}))
			if err != nil {
				return failed(fmt.Errorf("limit memory and time: %w", err))
			}
			return failed(writePage(s.out, args[0], args[1]))
		},
	}
}

func writePage(w io.Writer, what, dir string) error {
	if what == "summary" {
		_, sum, err := summarise(dir)
		if err != nil {
			return err
		}
		return writeJSON(w, sum)
	}
	write, err := pageOf(&streams{err: io.Discard}, dir, "html")
	if err != nil {
		return err
	}
	return write(w)
}
