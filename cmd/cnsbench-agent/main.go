// Command cnsbench-agent runs one command of a benchmark's workload and
// reports on it to the runner. It is started by cnsbench and in pods; people
// have no need to.
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
        --dial-for DURATION    how long to go on dialing (default 60s)
        --log-dir DIR | none   where the output waits for the runner (default: the
                               temporary directory; none if it is not writable)
        --name NAME            of the files there
  cnsbench-agent hold [--runner …] [--dial-for …]
      does the first I/O on volumes for the runner and waits until told to end
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

// run returns the exit code: the command's own, 2 for a wrong call, 1 when
// the agent itself failed.
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

// peer is how the runner is reached.
type peer struct {
	address  string
	token    string
	pin      string
	patience time.Duration
	once     bool // dialed only until it is connected
}

// flagsOf are the flags of a command that dials; the rest is in the
// environment.
func flagsOf(name string) (*flag.FlagSet, *peer) {
	p := &peer{token: os.Getenv(protocol.EnvToken), pin: os.Getenv(protocol.EnvPin)}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.StringVar(&p.address, "runner", os.Getenv(protocol.EnvRunner), "")
	flags.DurationVar(&p.patience, "dial-for", time.Minute, "")
	flags.SetOutput(io.Discard)
	return flags, p
}

// runWrap runs the command where the agent itself is.
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

// openLogs has the output go through files in dir; "none": through none;
// empty: in the temporary directory, if it can be written to.
func openLogs(dir, name string) (*wrap.Logs, error) {
	switch dir {
	case "none":
		return wrap.DirectLogs(""), nil
	case "":
		logs, err := wrap.OpenLogs(os.TempDir(), name)
		if err != nil {
			return wrap.DirectLogs(fmt.Sprintf("the command's output goes to the runner without a file between: a slow runner can hold the command up (%v)", err)), nil
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
	conn, welcome, err := meet(ctx, runner, clock, func() {})
	if err != nil {
		return 1, err
	}
	defer conn.Close() // the process ends
	return wrap.Hold(ctx, conn, welcome, clock)
}

// runJail runs the command in a root of its own.
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
	// Once in the jail the socket is out of reach: it dials again only before.
	runner := &peer{address: transport.Unix + ":" + spec.Socket, token: spec.Token, patience: time.Minute, once: true}
	return serve(ctx, runner, clock, spec.Cmd, logs, func(log func(string)) error {
		return sandbox.Enter(spec, log)
	})
}

// serve connects to the runner, enters the command's surroundings and runs it.
func serve(ctx context.Context, runner *peer, clock clock.Clock, cmd wrap.Command, logs *wrap.Logs, enter func(log func(string)) error) (int, error) {
	// The surroundings come before the hello: the sooner other volumes are let go
	// of the better. What there was to say is said after the welcome.
	var notes []string
	var entered error
	conn, welcome, err := meet(ctx, runner, clock, sync.OnceFunc(func() {
		entered = enter(func(line string) { notes = append(notes, line) })
	}))
	if err != nil {
		return 1, err
	}
	defer conn.Close() // the process ends
	for _, line := range notes {
		if err := conn.Write(protocol.Message{Log: &protocol.Log{Line: line}}); err != nil {
			return 1, err
		}
	}
	if entered != nil {
		wrap.Fail(conn, clock, protocol.CodeJail, entered)
		return 1, entered
	}
	return wrap.Run(ctx, conn, welcome, clock, cmd, logs)
}

// The wait before dialing again, which doubles.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
)

// meet dials the runner, calls connected and says hello. Where the connection
// ends before the runner's answer, as a runner with too many of them does, it
// dials again for as long as the runner's patience lasts.
func meet(ctx context.Context, runner *peer, clock clock.Clock, connected func()) (*protocol.Conn, *protocol.Welcome, error) {
	attempts := 0
	for began, pause := time.Now(), firstPause; ; pause = min(2*pause, longestPause) {
		l, conn, err := dial(ctx, runner, clock)
		if err != nil {
			return nil, nil, err
		}
		connected()
		attempts += l.Attempts
		l.Attempts, l.Took = attempts, time.Since(began)
		welcome, err := greet(l, conn, runner, clock)
		if err == nil {
			return conn, welcome, nil
		}
		_ = conn.Close() // the handshake's error says more
		if runner.once || !errors.Is(err, wrap.ErrUnanswered) || time.Since(began)+pause > runner.patience {
			return nil, nil, err
		}
		time.Sleep(pause)
	}
}

// dial connects to the runner. A signal that ends a process ends it: as PID 1
// a process is not ended by signals that it does not take.
func dial(ctx context.Context, runner *peer, clock clock.Clock) (*transport.Link, *protocol.Conn, error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	l, err := transport.Dial(ctx, runner.address, runner.pin, runner.patience)
	if err != nil {
		return nil, nil, err
	}
	return l, protocol.NewConn(l, clock.Now), nil
}

// greet says hello, how the runner was reached included.
func greet(l *transport.Link, conn *protocol.Conn, runner *peer, clock clock.Clock) (*protocol.Welcome, error) {
	welcome, err := wrap.Handshake(conn, protocol.Hello{
		Token: runner.token, Began: clock.Began(), Attempts: l.Attempts, DialNanos: int64(l.Took),
		Machine: machine.ID(),
	})
	if err == nil && welcome.SilenceNanos > 0 {
		l.SetSilence(time.Duration(welcome.SilenceNanos))
	}
	return welcome, err
}

// clockFrom is the agent's clock, shifted by text for tests.
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

// environ is the command's environment: ours without what is the agent's.
func environ() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, protocol.EnvPrefix) {
			env = append(env, e)
		}
	}
	return env
}
