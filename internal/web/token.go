package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// tokenQuery is the parameter of an address that has the token.
const tokenQuery = "token"

// RequireToken lets requests pass that have the token: as a bearer token, as the password of HTTP basic
// authentication, for which a browser asks, or in a cookie. A page that is opened with ?token=TOKEN sets the cookie and
// leads to the same address without the token, so that it stays in no history and no picture of the screen.
func RequireToken(next http.Handler, token string) http.Handler {
	want := sha256.Sum256([]byte(token))
	// The cookie opens this server and no other, and does not tell the token, which may be used elsewhere.
	sum := sha256.Sum256([]byte("cookie of cnsbench serve\n" + token))
	cookie := hex.EncodeToString(sum[:])
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		read := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch {
		case read && query.Has(tokenQuery) && isToken(query.Get(tokenQuery), want):
			http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: cookie, Path: "/", HttpOnly: true,
				Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
			query.Del(tokenQuery)
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("Referrer-Policy", "no-referrer")
			w.Header().Set("Location", withQuery(r.URL, query))
			w.WriteHeader(http.StatusSeeOther)
		case hasCookie(r, cookie) || isToken(password(r), want):
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("WWW-Authenticate", `Basic realm="cnsbench: the token is the password", charset="UTF-8"`)
			http.Error(w, "authentication failed: want the token as the password, or the address with the token that "+
				"cnsbench serve has printed", http.StatusUnauthorized)
		}
	})
}

// password is the token that a header gives; empty: none.
func password(r *http.Request) string {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return token
	}
	_, token, _ := r.BasicAuth()
	return token
}

func isToken(given string, want [sha256.Size]byte) bool {
	got := sha256.Sum256([]byte(given))
	return given != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// cookieName has the port, because a browser sends the cookies of a host to all its ports: two servers of one machine
// would replace each other's.
func cookieName(r *http.Request) string {
	const name = "cnsbench-token"
	_, port, err := net.SplitHostPort(r.Host)
	if n, bad := strconv.ParseUint(port, 10, 16); err == nil && bad == nil {
		return name + "-" + strconv.FormatUint(n, 10)
	}
	return name
}

func hasCookie(r *http.Request, want string) bool {
	c, err := r.Cookie(cookieName(r))
	return err == nil && subtle.ConstantTimeCompare([]byte(c.Value), []byte(want)) == 1
}

// withQuery is the address of this server with the path of u. A path with two slashes at its begin would name a host.
func withQuery(u *url.URL, query url.Values) string {
	path := "/" + strings.TrimLeft(u.EscapedPath(), `/\`)
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}
