// Command cnsbench-agent runs one command of a benchmark's workload and
// reports on it to the runner. It is started by cnsbench and in pods; people
// have no need to.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/engine/agent/jail"
	"github.com/cnsbench/cnsbench/internal/engine/agent/mono"
	"github.com/cnsbench/cnsbench/internal/engine/agent/wire"
	"github.com/cnsbench/cnsbench/internal/engine/agent/wrap"
)

const usage = `usage:
  cnsbench-agent wrap [--runner unix:PATH] [--log-dir DIR] [--name NAME] -- COMMAND [ARG...]
      runs COMMAND for the runner at $CNSBENCH_AGENT_RUNNER with the token in
      $CNSBENCH_AGENT_TOKEN
  cnsbench-agent jail
      the same for a local pod; started by cnsbench with a specification on
      descriptor 3
  cnsbench-agent version`

func main() {
	code, err := run(context.Background(), os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "cnsbench-agent: %v\n", err)
	}
	os.Exit(code)
}

// run returns the exit code: the command's own, 2 for a wrong call, 1 when
// the agent itself failed.
func run(ctx context.Context, args []string) (int, error) {
	if len(args) == 0 {
		return 2, errors.New(usage)
	}
	switch args[0] {
	case "version":
		fmt.Printf("%s (protocol %d)\n", wire.Version, wire.Proto)
		return 0, nil
	case "jail":
		return runJail(ctx)
	case "wrap":
		return runWrap(ctx, args[1:])
	}
	return 2, fmt.Errorf("unknown command %q\n%s", args[0], usage)
}

// runWrap runs the command where the agent itself is.
func runWrap(ctx context.Context, args []string) (int, error) {
	flags := flag.NewFlagSet("wrap", flag.ContinueOnError)
	runner := flags.String("runner", os.Getenv(wire.EnvRunner), "")
	logDir := flags.String("log-dir", os.TempDir(), "")
	name := flags.String("name", fmt.Sprintf("cnsbench-%d", os.Getpid()), "")
	flags.Usage = func() {}
	if err := flags.Parse(args); err != nil {
		return 2, fmt.Errorf("%w\n%s", err, usage)
	}
	clock, err := clockFrom(os.Getenv(wire.EnvClockOffset))
	if err != nil {
		return 2, err
	}
	cmd := wrap.Command{Args: flags.Args(), Env: environ()}
	if cmd.Dir, err = os.Getwd(); err != nil {
		return 1, err
	}
	logs, err := wrap.OpenLogs(*logDir, *name)
	if err != nil {
		return 1, err
	}
	logs.Echo = true
	return serve(ctx, *runner, os.Getenv(wire.EnvToken), clock, cmd, logs, func(func(string)) error { return nil })
}

// runJail runs the command in a root of its own.
func runJail(ctx context.Context) (int, error) {
	spec, err := jail.Read()
	if err != nil {
		return 1, err
	}
	logs, err := wrap.OpenLogs(spec.LogDir, spec.Name)
	if err != nil {
		return 1, err
	}
	clock := mono.New(time.Duration(spec.ClockOffset))
	return serve(ctx, "unix:"+spec.Socket, spec.Token, clock, spec.Cmd, logs, func(log func(string)) error {
		return jail.Enter(spec, log)
	})
}

// serve connects to the runner, enters the command's surroundings and runs it.
func serve(ctx context.Context, runner, token string, clock mono.Clock, cmd wrap.Command, logs *wrap.Logs, enter func(log func(string)) error) (int, error) {
	network, address, ok := strings.Cut(runner, ":")
	if !ok || network != "unix" || address == "" {
		return 2, fmt.Errorf("the runner's address %q is not unix:PATH: set %s", runner, wire.EnvRunner)
	}
	stream, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return 1, fmt.Errorf("reach the runner: %w", err)
	}
	conn := wire.NewConn(stream, clock.Now)
	defer conn.Close() // the process ends
	// The surroundings come first: the sooner other volumes are let go of the
	// better. What there was to say is said after the welcome.
	var notes []string
	entered := enter(func(line string) { notes = append(notes, line) })
	welcome, err := wrap.Handshake(conn, token)
	if err != nil {
		return 1, err
	}
	for _, line := range notes {
		if err := conn.Write(wire.Message{Log: &wire.Log{Line: line}}); err != nil {
			return 1, err
		}
	}
	if entered != nil {
		wrap.Fail(conn, clock, wire.CodeJail, entered)
		return 1, entered
	}
	return wrap.Run(ctx, conn, welcome, clock, cmd, logs)
}

// clockFrom is the agent's clock, shifted by text for tests.
func clockFrom(text string) (mono.Clock, error) {
	if text == "" {
		return mono.New(0), nil
	}
	offset, err := time.ParseDuration(text)
	if err != nil {
		return mono.Clock{}, fmt.Errorf("%s: %w", wire.EnvClockOffset, err)
	}
	return mono.New(offset), nil
}

// environ is the command's environment: ours without what is the agent's.
func environ() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, wire.EnvPrefix) {
			env = append(env, e)
		}
	}
	return env
}
