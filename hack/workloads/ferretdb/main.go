// Command ferretdb is FerretDB with its data in SQLite, on a Unix socket: the server with MongoDB's protocol of the
// library's entry ycsb. It embeds the server, because the command of github.com/FerretDB/FerretDB does not start when
// it is built from its Go module, which lacks the file with its version. It sends no telemetry, and has no port.
//
// Usage: ferretdb [-ping] [-sqlite-url URL] -socket PATH
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/FerretDB/FerretDB/ferretdb"
	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/options"
)

func main() {
	socket := flag.String("socket", "", "`PATH` of the socket, which must end in .sock for clients of MongoDB")
	sqlite := flag.String("sqlite-url", "file:data/", "`URL` of the folder of SQLite's files (file:PATH/)")
	ping := flag.Bool("ping", false, "succeed if a server answers at the socket")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	run := func() error { return serve(ctx, *sqlite, *socket) }
	if *ping {
		run = func() error { return answers(ctx, *socket) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "ferretdb:", err)
		os.Exit(1)
	}
}

// serve runs the server until ctx ends.
func serve(ctx context.Context, sqlite, socket string) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	server, err := ferretdb.New(&ferretdb.Config{Handler: "sqlite", SQLiteURL: sqlite, Logger: logger,
		Listener: ferretdb.ListenerConfig{Unix: socket}})
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

// answers says why no server answers within a second.
func answers(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	client, err := mongo.Connect(ctx, options.Client().ApplyURI("mongodb://"+url.PathEscape(socket)))
	if err != nil {
		return err
	}
	defer client.Disconnect(ctx)
	return client.Ping(ctx, nil)
}
