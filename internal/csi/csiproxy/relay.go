package csiproxy

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// relay connects a client's connection with one to the driver until both directions have ended.
type relay struct {
	down, up *net.UnixConn
	tap      *tap
}

// run copies both directions and forwards half-closes.
func (r *relay) run(now func() int64) {
	var both sync.WaitGroup
	both.Go(func() { copyAlong(r.up, r.down, now, r.tap.fromClient) })
	both.Go(func() { copyAlong(r.down, r.up, now, r.tap.fromDriver) })
	both.Wait()
	r.close()
}

func (r *relay) close() {
	_ = r.down.Close()
	_ = r.up.Close()
}

// chunk is the size of the copy buffer.
const chunk = 64 << 10

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// copyAlong copies until either side ends. Bytes are parsed before they are forwarded, so that a response is
// never recorded before its request, and the record is complete when the client has the response.
func copyAlong(to, from *net.UnixConn, now func() int64, along func([]byte, int64)) {
	buffer := chunks.Get().(*[chunk]byte)
	defer func() {
		clear(buffer[:]) // may contain secrets
		chunks.Put(buffer)
	}()
	for {
		n, err := from.Read(buffer[:])
		if n > 0 {
			along(buffer[:n], now())
			if _, err := to.Write(buffer[:n]); err != nil {
				_ = from.CloseRead() // the writer's next write fails
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
	return slices.Collect(maps.Keys(rs.all))
}

// drain closes each connection once it is idle, and all remaining ones when ctx ends.
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
