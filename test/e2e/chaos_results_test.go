//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle/server"
)

// acknowledged is a transport that notes how much of each file a results service has acknowledged.
type acknowledged struct {
	mu    sync.Mutex
	sizes map[string]int64
}

func (a *acknowledged) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	_, name, isFile := strings.Cut(req.URL.Path, "/files/")
	if err != nil || !isFile || req.Method != http.MethodPut || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	var ack server.Ack
	if json.Unmarshal(text, &ack) == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.sizes[name] = max(a.sizes[name], ack.Size)
	}
	return resp, nil
}

// check fails the test if the service has less of a file than it has acknowledged, or something else. Files that the
// run has removed since are left out.
func (a *acknowledged) check(b *box, source, kept string) (files int) {
	b.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, size := range a.sizes {
		want, err := os.ReadFile(filepath.Join(source, name))
		if os.IsNotExist(err) {
			continue
		}
		got, err := os.ReadFile(filepath.Join(kept, name))
		if err != nil || int64(len(got)) < size || !bytes.HasPrefix(want, got[:size]) {
			b.Errorf("%s: %d bytes were acknowledged, the service has %d, %v", name, size, len(got), err)
		}
		files++
	}
	return files
}

// killResults kills the results service while it receives the bundle of a run. The run is not hindered, nothing that
// was acknowledged is lost, and in the end the copy is the bundle.
func killResults(b *box, r *rand.Rand, kills int) {
	at, kept := freePort(b.T), b.in("results", "ns", "r1")
	serve := func() *live {
		s := b.start(b.cnsbench(), "serve", "--dir", b.in("results"), "--listen", at)
		s.reaches("results of")
		return s
	}
	acks := &acknowledged{sizes: map[string]int64{}}
	remote, err := (&server.Client{URL: "http://" + at, HTTP: &http.Client{Transport: acks}}).Run("ns", "r1")
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Replace(churn, "runtime: 3s", "runtime: "+(time.Duration(kills)*1500*time.Millisecond).String(), 1)
	run := b.startRun(text + class("null"))
	run.reaches("running")
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	push, err := server.StartPush(ctx, b.bundle(), remote, server.Options{Every: 20 * time.Millisecond,
		MaxBackoff: 200 * time.Millisecond})
	if err != nil {
		b.Fatal(err)
	}
	for range kills {
		s := serve()
		b.wait(within(r, 1500*time.Millisecond))
		s.kill()
		b.Logf("%d files were acknowledged", acks.check(b, b.bundle(), kept))
	}
	s := serve()
	run.wait().wants(b, 0)
	if err := push.Finish(ctx); err != nil {
		b.Fatal(err)
	}
	b.run("verify", kept).wants(b, 0)
	b.run("show", kept).wants(b, 0)
	for name, text := range b.contents(b.bundle()) {
		if copied, err := os.ReadFile(filepath.Join(kept, name)); err != nil || string(copied) != text {
			b.Errorf("%s of the copy differs: %v", name, err)
		}
	}
	for name := range b.contents(kept) {
		if _, err := os.Stat(filepath.Join(b.bundle(), name)); err != nil {
			b.Errorf("only the copy has %s", name)
		}
	}
	s.signal(os.Interrupt)
	s.wait().wants(b, 0)
	b.clean()
}

// contents returns the files of a directory.
func (b *box) contents(dir string) map[string]string {
	b.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir+"/")] = string(text)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return all
}
