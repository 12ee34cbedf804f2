package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Guard refuses what a browser sends for a page of somebody else's: requests to
// a host name that is not of this machine, which such a page can let point here,
// and requests that another page has made. hosts are further names to answer to.
// It is for a service that does not ask who a request comes from.
func Guard(next http.Handler, hosts []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		why := ""
		switch origin := r.Header.Values("Origin"); {
		case !answersTo(r.Host, hosts):
			why = fmt.Sprintf("this service does not answer to the host %q; serve --allow-host adds a name", clip(r.Host))
		case len(origin) > 0 && !slices.Equal(origin, []string{"http://" + r.Host}) &&
			!slices.Equal(origin, []string{"https://" + r.Host}) && !fromHost(origin, hosts):
			why = fmt.Sprintf("this request is of a page from %q; serve --allow-host adds a name", clip(origin[0]))
		}
		if why == "" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close") // what is left of the body is of no interest
		reply(w, http.StatusForbidden, problem{Error: why})
	})
}

// answersTo says whether a request for a host, with or without a port, is meant
// for us. No name can be made to point at what is an address already.
func answersTo(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if _, err := netip.ParseAddr(host); err == nil || strings.EqualFold(host, "localhost") {
		return true
	}
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, host) })
}

// fromHost says whether the one origin of a request is of an allowed name.
func fromHost(origin, names []string) bool {
	u, err := url.Parse(origin[0])
	return err == nil && len(origin) == 1 &&
		slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, u.Hostname()) })
}
