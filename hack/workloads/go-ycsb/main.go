// Command go-ycsb runs YCSB on PostgreSQL (pg) or on a server with MongoDB's protocol (mongodb), by the client, the
// core workload, the drivers and the measurements of github.com/pingcap/go-ycsb. That module's own command links the
// clients of 18 databases. This one differs from it in other points too:
//
//   - The property maxexecutiontime, which go-ycsb declares and ignores, ends the run after that many seconds. The
//     operations that were sent are waited for; after 10 s more they are cancelled and count as errors.
//   - A client whose connection is lost connects again with its next operation; go-ycsb panics. After an error a client
//     pauses for 10 ms.
//   - With the distribution zipfian all keys are of records that were loaded. go-ycsb's range has one key more, and the
//     keys that it expects to be inserted: operations on these find nothing.
//   - It prints when the run began and each interval ended, in Unix seconds.
//   - It listens on no port for profiles.
//
// Usage: go-ycsb load|run pg|mongodb [-p NAME=VALUE]…
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/magiconair/properties"
	_ "github.com/pingcap/go-ycsb/db/mongodb"
	_ "github.com/pingcap/go-ycsb/db/pg"
	"github.com/pingcap/go-ycsb/pkg/client"
	"github.com/pingcap/go-ycsb/pkg/measurement"
	"github.com/pingcap/go-ycsb/pkg/prop"
	_ "github.com/pingcap/go-ycsb/pkg/workload"
	"github.com/pingcap/go-ycsb/pkg/ycsb"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "go-ycsb:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 || args[0] != "load" && args[0] != "run" {
		return errors.New("usage: go-ycsb load|run pg|mongodb [-p NAME=VALUE]…")
	}
	creator := ycsb.GetDBCreator(args[1])
	if creator == nil {
		return fmt.Errorf("unknown database %q: want pg or mongodb", args[1])
	}
	p, err := parse(args[2:])
	if err != nil {
		return err
	}
	set(p, prop.DoTransactions, args[0] == "run")
	measurement.InitMeasure(p)
	workload, err := newWorkload(p, args[0] == "run")
	if err != nil {
		return err
	}
	defer workload.Close()
	db, err := creator.Create(p)
	if err != nil {
		return fmt.Errorf("connect to the server: %w", err)
	}
	defer db.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if seconds := p.GetInt64(prop.MaxExecutiontime, 0); seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	measure(p, func() {
		client.NewClient(p, workload, pausing{client.DbWrapper{DB: reconnecting{db}}}).Run(ctx)
	})
	return nil
}

// parse returns the properties that the arguments set.
func parse(args []string) (*properties.Properties, error) {
	p := properties.NewProperties()
	p.DisableExpansion = true
	flags := flag.NewFlagSet("go-ycsb", flag.ContinueOnError)
	flags.Func("p", "property `NAME=VALUE`", func(text string) error {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return errors.New("want NAME=VALUE")
		}
		_, _, err := p.Set(name, value)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return p, nil
}

// newWorkload creates the core workload. Its zipfian keys are in [insertstart, insertstart+insertcount], and beyond
// that by what it expects of operationcount.
func newWorkload(p *properties.Properties, transactions bool) (ycsb.Workload, error) {
	operations := p.GetInt64(prop.OperationCount, 0)
	if transactions && p.GetString(prop.RequestDistribution, prop.RequestDistributionDefault) == "zipfian" {
		set(p, prop.InsertCount, p.GetInt64(prop.RecordCount, 0)-1)
		set(p, prop.OperationCount, 0)
	}
	workload, err := ycsb.GetWorkloadCreator("core").Create(p)
	if operations == 0 {
		operations = math.MaxInt64 // until maxexecutiontime, or a signal
	}
	set(p, prop.OperationCount, operations)
	return workload, err
}

func set(p *properties.Properties, name string, value any) {
	if _, _, err := p.Set(name, fmt.Sprint(value)); err != nil {
		panic(err) // only an expansion can fail, which is disabled
	}
}

// measure prints the measurements after each interval of a run, and after it.
func measure(p *properties.Properties, run func()) {
	interval := time.Duration(max(1, p.GetInt64(prop.LogInterval, 10))) * time.Second
	set(p, prop.LogInterval, strconv.FormatInt(int64(math.MaxInt64/time.Second), 10)) // not by the client
	start := time.Now()
	fmt.Printf("Run began at %s, intervals of %v\n", unix(start), interval)
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		ticks := time.NewTicker(interval)
		defer ticks.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticks.C:
				fmt.Println("Interval ended at", unix(time.Now()))
				measurement.Summary()
			}
		}
	})
	run()
	took := time.Since(start)
	close(done)
	ended.Wait()
	fmt.Println("Run finished, takes", took)
	measurement.Output()
}

// unix prints a time in Unix seconds.
func unix(t time.Time) string { return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()) }
