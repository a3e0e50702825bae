package app

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// origin is the console's origin, such as https://weir.example; empty if not
// configured. It does not come from the Host header, which can be forged.
func (c Config) origin() (string, error) {
	if c.ConsoleOrigin == "" {
		return c.localOrigin(), nil
	}
	parsed, err := url.Parse(c.ConsoleOrigin)
	bare := err == nil && parsed.Scheme == "https" && parsed.Hostname() != "" && strings.Trim(parsed.Path, "/") == "" &&
		parsed.User == nil && parsed.RawQuery == "" && parsed.Fragment == ""
	if !bare {
		return "", fmt.Errorf("WEIR_CONSOLE_ORIGIN is %q: use https:// and the host of the console, such as https://weir.example", c.ConsoleOrigin)
	}
	return "https://" + strings.ToLower(parsed.Host), nil
}

// linkOrigin is the origin of links and examples.
func (a *App) linkOrigin() string {
	origin, err := a.config.origin()
	if err != nil { // Validate has refused it
		return DefaultOrigin
	}
	return cmp.Or(origin, DefaultOrigin)
}

// localOrigin is the listener's address for a user of the same machine.
func (c Config) localOrigin() string {
	_, port, err := net.SplitHostPort(c.Listen)
	switch {
	case err != nil || port == "" || port == "0":
		return ""
	case port == "443":
		return "https://localhost"
	}
	return "https://localhost:" + port
}
