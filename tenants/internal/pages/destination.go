package pages

import (
	"net/http"
	"net/url"
	"path"
	"strings"
)

// home is where a member starts.
const home = "/console"

// maxDestination is the longest destination, in bytes.
const maxDestination = 2000

// Destination is where an intermediate page, such as the
// sign-in, leads back to: the parameter to. As it can be
// forged, it must be a page of this console, else home.
func Destination(r *http.Request) string {
	to := r.URL.Query().Get("to")
	if r.Method == http.MethodPost {
		to = r.PostForm.Get("to")
	}
	if isPage(to) {
		return to
	}
	return home
}

func isPage(to string) bool {
	if len(to) > maxDestination || strings.ContainsFunc(to, isNoAddress) {
		return false
	}
	parsed, err := url.Parse(to)
	if err != nil || parsed.IsAbs() || parsed.Host != "" || parsed.User != nil || !strings.HasPrefix(to, "/") {
		return false
	}
	return path.Clean(parsed.Path) == parsed.Path && strings.HasPrefix(parsed.Path, "/console/") && !isIntermediate(parsed.Path)
}

// isNoAddress finds characters that browsers drop or read differently.
func isNoAddress(r rune) bool {
	return r <= ' ' || r >= 0x7f || r == '\\'
}

// isIntermediate reports whether a page only leads on to others.
func isIntermediate(page string) bool {
	for _, detour := range []string{"/console/session", "/console/sign-in", "/console/sign-out"} {
		if page == detour || strings.HasPrefix(page, detour+"/") {
			return true
		}
	}
	return false
}

// WithDestination is the address of an
// intermediate page that leads back to r's.
func WithDestination(page string, r *http.Request) string {
	return page + "?to=" + url.QueryEscape(r.URL.RequestURI())
}
