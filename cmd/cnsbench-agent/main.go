// Command cnsbench-agent runs one command of a benchmark's workload and reports on it to the runner. cnsbench
// starts it, locally and in pods.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/clock"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/agent/sandbox"
	"github.com/cnsbench/cnsbench/internal/agent/transport"
	"github.com/cnsbench/cnsbench/internal/agent/wrap"
	"github.com/cnsbench/cnsbench/internal/machine"
)

const usage = `usage:
  cnsbench-agent wrap [flags] -- COMMAND [ARG...]
      runs COMMAND for the runner at $CNSBENCH_AGENT_RUNNER with the token in
      $CNSBENCH_AGENT_TOKEN and, over TLS, the certificate's hash in
      $CNSBENCH_AGENT_PIN
        --runner unix:PATH | tls:HOST:PORT   in place of the variable
        --dial-for DURATION    how long to keep dialing (default 60s)
        --log-dir DIR | none   where the output waits for the runner (default: the
                               temporary directory; none if it is not writable)
        --name NAME            of the files there
  cnsbench-agent hold [--runner …] [--dial-for …]
      does the first I/O on volumes for the runner and waits until it is asked to end
  cnsbench-agent install DIR
      copies this program to DIR/cnsbench-agent
  cnsbench-agent jail
      wrap for a local pod; started by cnsbench with a specification on
      descriptor 3
  cnsbench-agent version`

func main() {
	code, err := run(context.Background(), os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "cnsbench-agent: %v\n", err)
	}
	os.Exit(code)
}

// run returns the exit code: the command's own, 2 for wrong usage, 1 when the agent itself failed.
func run(ctx context.Context, args []string) (int, error) {
	if len(args) == 0 {
		return 2, errors.New(usage)
	}
	clock, err := clockFrom(os.Getenv(protocol.EnvClockOffset))
	if err != nil {
		return 2, err
	}
	switch args[0] {
	case "version":
		fmt.Printf("%s (protocol %d)\n", protocol.Version, protocol.Proto)
		return 0, nil
	case "install":
		if len(args) != 2 {
			return 2, errors.New("install takes one directory\n" + usage)
		}
		return exitCode(install(args[1]))
	case "jail":
		return runJail(ctx)
	case "wrap":
		return runWrap(ctx, clock, args[1:])
	case "hold":
		return runHold(ctx, clock, args[1:])
	}
	return 2, fmt.Errorf("unknown command %q\n%s", args[0], usage)
}

func exitCode(err error) (int, error) {
	if err != nil {
		return 1, err
	}
	return 0, nil
}

// runnerAddr is how to reach the runner.
type runnerAddr struct {
	address  string
	token    string
	pin      string
	dialFor  time.Duration
	dialOnce bool // do not dial again after the first connection
}

// flagsOf returns the flags of a command that dials; the rest is in the environment.
func flagsOf(name string) (*flag.FlagSet, *runnerAddr) {
	p := &runnerAddr{token: os.Getenv(protocol.EnvToken), pin: os.Getenv(protocol.EnvPin)}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.StringVar(&p.address, "runner", os.Getenv(protocol.EnvRunner), "")
	flags.DurationVar(&p.dialFor, "dial-for", time.Minute, "")
	flags.SetOutput(io.Discard)
	return flags, p
}

// runWrap runs the command in the agent's own environment.
func runWrap(ctx context.Context, clock clock.Clock, args []string) (int, error) {
	flags, runner := flagsOf("wrap")
	logDir := flags.String("log-dir", "", "")
	name := flags.String("name", fmt.Sprintf("cnsbench-%d", os.Getpid()), "")
	if err := flags.Parse(args); err != nil {
		return 2, fmt.Errorf("%w\n%s", err, usage)
	}
	cmd := wrap.Command{Args: flags.Args(), Env: environ()}
	var err error
	if cmd.Dir, err = os.Getwd(); err != nil {
		return 1, err
	}
	logs, err := openLogs(*logDir, *name)
	if err != nil {
		return 1, err
	}
	logs.Echo = true
	return serve(ctx, runner, clock, cmd, logs, func(func(string)) error { return nil })
}

// openLogs returns logs in dir; "none": without files; empty: in the temporary directory, if it is writable.
func openLogs(dir, name string) (*wrap.Logs, error) {
	switch dir {
	case "none":
		return wrap.DirectLogs(""), nil
	case "":
		logs, err := wrap.OpenLogs(os.TempDir(), name)
		if err != nil {
			return wrap.DirectLogs(fmt.Sprintf("the command's output goes to the runner without a file: a slow runner can block the command (%v)", err)), nil
		}
		return logs, nil
	}
	return wrap.OpenLogs(dir, name)
}

// runHold holds volumes.
func runHold(ctx context.Context, clock clock.Clock, args []string) (int, error) {
	flags, runner := flagsOf("hold")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return 2, fmt.Errorf("hold takes flags only: %w\n%s", err, usage)
	}
	conn, welcome, err := connect(ctx, runner, clock, func() {})
	if err != nil {
		return 1, err
	}
	defer conn.Close()
	return wrap.Hold(ctx, conn, welcome, clock)
}

// runJail runs the command in a sandbox.
func runJail(ctx context.Context) (int, error) {
	spec, err := sandbox.Read()
	if err != nil {
		return 1, err
	}
	logs, err := wrap.OpenLogs(spec.LogDir, spec.Name)
	if err != nil {
		return 1, err
	}
	clock := clock.New(time.Duration(spec.ClockOffset))
	// The socket is not reachable inside the sandbox: dial again only before.
	runner := &runnerAddr{address: transport.Unix + ":" + spec.Socket, token: spec.Token, dialFor: time.Minute,
		dialOnce: true}
	return serve(ctx, runner, clock, spec.Cmd, logs, func(log func(string)) error {
		return sandbox.Enter(spec, log)
	})
}

// serve connects to the runner, enters the sandbox and runs the command.
func serve(ctx context.Context, runner *runnerAddr, clock clock.Clock, cmd wrap.Command, logs *wrap.Logs,
	enter func(log func(string)) error) (int, error) {
	// Enter before the hello, to release other volumes as early as possible. Its log
	// lines are sent after the welcome.
	var notes []string
	var entered error
	conn, welcome, err := connect(ctx, runner, clock, sync.OnceFunc(func() {
		entered = enter(func(line string) { notes = append(notes, line) })
	}))
	if err != nil {
		return 1, err
	}
	defer conn.Close()
	for _, line := range notes {
		if err := conn.Write(protocol.Message{Log: &protocol.Log{Line: line}}); err != nil {
			return 1, err
		}
	}
	if entered != nil {
		wrap.Fail(conn, clock, protocol.CodeSandbox, entered)
		return 1, entered
	}
	return wrap.Run(ctx, conn, welcome, clock, cmd, logs)
}

// Bounds of the pause between dials, which doubles.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
)

// connect dials the runner, calls connected and sends the hello. Where the connection ends before the
// runner's answer, as with an overloaded runner, it dials again until dialFor has passed.
func connect(ctx context.Context, runner *runnerAddr, clock clock.Clock, connected func()) (*protocol.Conn,
	*protocol.Welcome, error) {
	attempts := 0
	for began, pause := time.Now(), firstPause; ; pause = min(2*pause, longestPause) {
		l, conn, err := dial(ctx, runner, clock)
		if err != nil {
			return nil, nil, err
		}
		connected()
		attempts += l.Attempts
		l.Attempts, l.Took = attempts, time.Since(began)
		welcome, err := hello(l, conn, runner, clock)
		if err == nil {
			return conn, welcome, nil
		}
		_ = conn.Close() // the handshake's error is the cause
		if runner.dialOnce || !errors.Is(err, wrap.ErrUnanswered) || time.Since(began)+pause > runner.dialFor {
			return nil, nil, err
		}
		time.Sleep(pause)
	}
}

// dial connects to the runner. A terminating signal ends it: PID 1 ignores signals that it does not handle.
func dial(ctx context.Context, runner *runnerAddr, clock clock.Clock) (*transport.Link, *protocol.Conn, error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	l, err := transport.Dial(ctx, runner.address, runner.pin, runner.dialFor)
	if err != nil {
		return nil, nil, err
	}
	return l, protocol.NewConn(l, clock.Now), nil
}

// hello sends the hello with the connection's details.
func hello(l *transport.Link, conn *protocol.Conn, runner *runnerAddr, clock clock.Clock) (*protocol.Welcome, error) {
	welcome, err := wrap.Handshake(conn, protocol.Hello{
		Token: runner.token, Began: clock.Began(), BeganWall: clock.BeganWall(), Attempts: l.Attempts,
		DialNanos: int64(l.Took), Machine: machine.ID(),
	})
	if err == nil && welcome.SilenceNanos > 0 {
		l.SetSilence(time.Duration(welcome.SilenceNanos))
	}
	return welcome, err
}

// clockFrom returns the agent's clock, shifted by text for tests.
func clockFrom(text string) (clock.Clock, error) {
	if text == "" {
		return clock.New(0), nil
	}
	offset, err := time.ParseDuration(text)
	if err != nil {
		return clock.Clock{}, fmt.Errorf("%s: %w", protocol.EnvClockOffset, err)
	}
	return clock.New(offset), nil
}

// environ returns the command's environment: the agent's without its own variables.
func environ() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, protocol.EnvPrefix) {
			env = append(env, e)
		}
	}
	return env
}
