package csiproxy

import (
	"context"
	"net"
	"sync"
	"time"
)

// relay joins a client's connection to one of its own to the driver, until
// both directions have ended.
type relay struct {
	down, up *net.UnixConn
	tap      *tap
}

// run copies both ways. An end of one direction is handed on as such.
func (r *relay) run(now func() int64) {
	var both sync.WaitGroup
	both.Go(func() { pass(r.up, r.down, now, r.tap.fromClient) })
	both.Go(func() { pass(r.down, r.up, now, r.tap.fromDriver) })
	both.Wait()
	r.close()
}

func (r *relay) close() {
	_ = r.down.Close()
	_ = r.up.Close()
}

// chunk is what is copied at once.
const chunk = 64 << 10

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// pass copies until either side has had enough. Bytes are read along before
// they go on: an answer can then not overtake its request in the record, and
// whoever has an answer finds its record complete.
func pass(to, from *net.UnixConn, now func() int64, along func([]byte, int64)) {
	buffer := chunks.Get().(*[chunk]byte)
	defer func() {
		clear(buffer[:]) // there may have been secrets in it
		chunks.Put(buffer)
	}()
	for {
		n, err := from.Read(buffer[:])
		if n > 0 {
			along(buffer[:n], now())
			if _, err := to.Write(buffer[:n]); err != nil {
				_ = from.CloseRead() // the writer learns of it by its next write
				return
			}
		}
		if err != nil {
			_ = to.CloseWrite()
			return
		}
	}
}

// relays are the connections of a proxy.
type relays struct {
	mu  sync.Mutex
	all map[*relay]struct{}
	wg  sync.WaitGroup
}

func (rs *relays) add(r *relay) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.all[r] = struct{}{}
}

func (rs *relays) remove(r *relay) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.all, r)
}

func (rs *relays) list() []*relay {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var all []*relay
	for r := range rs.all {
		all = append(all, r)
	}
	return all
}

// drain closes each connection when it has had no call in flight for a
// moment, and all that are left when ctx ends.
func (rs *relays) drain(ctx context.Context, now func() int64) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		all := rs.list()
		if len(all) == 0 {
			break
		}
		for _, r := range all {
			if ctx.Err() != nil || r.tap.idle(now()) {
				r.close()
			}
		}
		<-tick.C
	}
	rs.wg.Wait()
}
