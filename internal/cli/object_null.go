package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/dist"
	"github.com/cnsbench/cnsbench/internal/object/nullserver"
	"github.com/cnsbench/cnsbench/internal/object/selector"
	"github.com/cnsbench/cnsbench/internal/run"
)

// nullFlags are those of object null-server.
type nullFlags struct {
	listen, size, truth string
	whileInput          bool
	delays              []string
	options             nullserver.Options
}

func newNullServer(s *streams) *cobra.Command {
	var f nullFlags
	c := &cobra.Command{
		Use: "null-server", Short: "Serve S3 and Swift without storing anything, to measure the client itself",
		Long: `Serves S3 and Swift without storing anything. The content of an object is computed from its
name; request bodies are dropped. Responses come at once, unless a delay, a stall or a limit
of concurrent requests is injected; --truth records the server's true figures, to compare
with a client's.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd.Context(), s) },
	}
	fl := c.Flags()
	fl.StringVar(&f.listen, "listen", "127.0.0.1:0", "HOST:PORT; port 0: any, which is printed")
	fl.StringVar(&f.size, "size", "4KiB", "size of every object")
	fl.StringArrayVar(&f.delays, "delay", nil, "VERB=DISTRIBUTION, such as GET=5ms, PUT=2ms+exp(3ms), "+
		"LIST=lognormal(20ms,0.5), *=uniform(1ms,2ms); may be repeated")
	fl.Uint64Var(&f.options.Seed, "seed", 1, "seed of the delays")
	fl.IntVar(&f.options.Concurrency, "concurrency", 0, "requests that are served at a time; others wait (0: no limit)")
	fl.DurationVar(&f.options.StallAt, "stall-at", 0, "how long after the first request a stall begins")
	fl.DurationVar(&f.options.StallFor, "stall-for", 0, "length of the stall")
	fl.BoolVar(&f.whileInput, "while-input", false, "end when standard input does")
	_ = fl.MarkHidden("while-input") // for who starts it to be outlived by none
	fl.StringVar(&f.truth, "truth", "", "file for the true figures: lines of JSON with histograms by verb, "+
		"written at the end")
	return c
}

func (f *nullFlags) serve(ctx context.Context, s *streams) error {
	if err := f.check(); err != nil {
		return err
	}
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	if f.whileInput {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // however it ends
			stop()
		}()
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", f.listen)
	if err != nil {
		return failed(err)
	}
	fmt.Fprintf(s.out, "http://%s\n", l.Addr())
	return failed(errors.Join(f.options.Serve(ctx, l), f.writeTruth()))
}

// check parses the flags.
func (f *nullFlags) check() (err error) {
	o := &f.options
	if o.Size, err = selector.ParseBytes(f.size); err != nil {
		return fmt.Errorf("--size: %w", err)
	}
	if o.Concurrency < 0 || o.StallAt < 0 || o.StallFor < 0 {
		return errors.New("--concurrency, --stall-at and --stall-for cannot be negative")
	}
	if o.StallAt > 0 && o.StallFor == 0 {
		return errors.New("--stall-at needs --stall-for, the length of the stall")
	}
	for _, text := range f.delays {
		verb, d, ok := strings.Cut(text, "=")
		if verb = strings.ToUpper(strings.TrimSpace(verb)); !ok || verb != nullserver.Every &&
			!slices.Contains(nullserver.Verbs, verb) {
			return fmt.Errorf("--delay %s: want VERB=DISTRIBUTION, where VERB is one of %s, or *", text,
				strings.Join(nullserver.Verbs, ", "))
		}
		if o.Delays == nil {
			o.Delays = map[string]dist.Dist{}
		}
		if o.Delays[verb], err = dist.Parse(d); err != nil {
			return fmt.Errorf("--delay %s: %w", text, err)
		}
	}
	o.Sleep = run.PreciseSleep
	if f.truth != "" {
		o.Truth = &nullserver.Truth{}
	}
	return nil
}

func (f *nullFlags) writeTruth() error {
	if f.truth == "" {
		return nil
	}
	w, err := os.Create(f.truth)
	if err != nil {
		return err
	}
	return errors.Join(f.options.Truth.Write(w, &f.options), w.Close())
}
