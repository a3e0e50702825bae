package tenants

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Sending is how an API key's entries are taken.
type Sending struct {
	// Lenient: entries are normalized as with Prefer: handling=lenient,
	// unless a request prefers otherwise.
	Lenient bool `json:"lenient,omitempty"`

	// Origins are the web pages that may use the key, such as
	// https://shop.example. Everybody who opens such a page can read the
	// key, so it can only write, has a limit of its own, and its entries
	// are marked as those of an untrusted client. None: programs use it.
	Origins []string `json:"origins,omitempty"`
}

const (
	maxOrigins     = 20
	maxOriginBytes = 200
)

// cleaned has the origins as browsers send them: in lower case, without the
// usual port or a slash at the end, each once.
func (s Sending) cleaned() Sending {
	var origins []string
	for _, origin := range s.Origins {
		origin = strings.TrimSuffix(strings.ToLower(strings.TrimSpace(origin)), "/")
		switch scheme, _, _ := strings.Cut(origin, ":"); scheme {
		case "https":
			origin = strings.TrimSuffix(origin, ":443")
		case "http":
			origin = strings.TrimSuffix(origin, ":80")
		}
		if !slices.Contains(origins, origin) {
			origins = append(origins, origin)
		}
	}
	s.Origins = origins
	return s
}

func (s Sending) equal(other Sending) bool {
	return s.Lenient == other.Lenient && slices.Equal(s.Origins, other.Origins)
}

// check returns the faults for a key that may read access and has a limit
// of its own of rate requests a minute; 0: none.
func (s Sending) check(access Access, rate int) (faults Invalid) {
	if len(s.Origins) == 0 {
		return nil
	}
	if len(s.Origins) > maxOrigins {
		return Invalid{{"origins", fmt.Sprintf("origins has %d origins.", len(s.Origins)),
			fmt.Sprintf("Use at most %d, and another key for the others.", maxOrigins)}}
	}
	for _, origin := range s.Origins {
		if !isOrigin(origin) {
			faults = append(faults, Fault{"origins", fmt.Sprintf("origins has %.100q.", origin),
				"Use a scheme and a host, in ASCII, with a port where it is not the usual one, such as https://shop.example or http://localhost:3000."})
		}
	}
	if access != WriteAccess {
		faults = append(faults, Fault{"access", fmt.Sprintf("access is %q, and everybody who opens a page of origins can read the key.", access),
			"Use write for a key with origins."})
	}
	if rate == 0 {
		faults = append(faults, Fault{"rate_per_minute", "rate_per_minute is not set, and everybody who opens a page of origins can use the key.",
			"Set a limit of its own for a key with origins, so that it can't use up that of the organization."})
	}
	return faults
}

// hostName is a name as browsers send it: one with other letters in its ASCII form.
var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_.-]*[a-z0-9])?$`)

// isOrigin reports whether text is the origin of a web page as browsers send
// it (RFC 6454, section 6.2).
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxOriginBytes || u.Scheme != "https" && u.Scheme != "http" {
		return false
	}
	host := u.Hostname()
	address, err := netip.ParseAddr(host)
	switch {
	case err != nil && !hostName.MatchString(host), err == nil && (address.String() != host || address.Zone() != ""):
		return false
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return false
		}
		host += ":" + strconv.FormatUint(n, 10)
	}
	return text == u.Scheme+"://"+host
}
