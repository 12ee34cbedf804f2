package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Guard refuses cross-site requests of a browser: requests to a foreign host name, which an attacker's DNS
// may point here, and requests with a foreign origin. hosts are further accepted names. It is for a service
// without authentication.
func Guard(next http.Handler, hosts []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		why := ""
		switch origin := r.Header.Values("Origin"); {
		case !acceptsHost(r.Host, hosts):
			why = fmt.Sprintf("host %q not allowed: add it with serve --allow-host", clip(r.Host))
		case len(origin) > 0 && !slices.Equal(origin, []string{"http://" + r.Host}) &&
			!slices.Equal(origin, []string{"https://" + r.Host}) && !acceptsOrigin(origin, hosts):
			why = fmt.Sprintf("origin %q not allowed: add it with serve --allow-host", clip(origin[0]))
		}
		if why == "" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close") // the rest of the body is not read
		reply(w, http.StatusForbidden, problem{Error: why})
	})
}

// Bounded returns a server of h with limits on what a client may send before it is answered, and on its silence.
func Bounded(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10}
}

// acceptsHost reports whether a host, with or without a port, is this service's. An address cannot be rebound
// by DNS.
func acceptsHost(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if _, err := netip.ParseAddr(host); err == nil || strings.EqualFold(host, "localhost") {
		return true
	}
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, host) })
}

// acceptsOrigin reports whether the single origin of a request has an allowed name.
func acceptsOrigin(origin, names []string) bool {
	u, err := url.Parse(origin[0])
	return err == nil && len(origin) == 1 &&
		slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, u.Hostname()) })
}
