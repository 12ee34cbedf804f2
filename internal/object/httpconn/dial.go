package httpconn

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
)

// nextSource spreads connections over the local addresses of their endpoint.
var nextSource atomic.Uint64

// dial opens a connection to the server, or to the proxy.
func (c *Conn) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	if c.source.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.source, 0))
	}
	raw, err := d.DialContext(ctx, "tcp"+c.ep.Family, cmp.Or(c.ep.Proxy, c.ep.Address))
	if err == nil && c.ep.Routes != nil {
		c.ep.Routes.add(raw, c.ep.Proxy != "")
	}
	return raw, err
}

// maxRoutes bounds the addresses that are told apart.
const maxRoutes = 100

func (r *Routes) add(c net.Conn, proxy bool) {
	remote, local := c.RemoteAddr().String(), c.LocalAddr().String()
	family := "IPv6"
	if a, err := netip.ParseAddrPort(remote); err == nil && a.Addr().Unmap().Is4() {
		family = "IPv4"
	}
	if host, _, err := net.SplitHostPort(local); err == nil {
		local = host
	}
	to := remote
	if proxy {
		to = "the proxy " + remote
	}
	key := fmt.Sprintf("to %s from %s (%s)", to, local, family)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	if r.counts[key] == 0 && len(r.counts) >= maxRoutes {
		key = "elsewhere"
	}
	r.counts[key]++
}

// Lines describes the connections that were opened, by their addresses, in order.
func (r *Routes) Lines() (lines []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(r.counts)) {
		lines = append(lines, fmt.Sprintf("%d connections %s", r.counts[key], key))
	}
	return lines
}
