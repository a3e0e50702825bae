package app

import (
	"testing"
)

// The origin of the console is the setting, or localhost; nothing else.
func TestOrigin(t *testing.T) {
	for name, c := range map[string]struct {
		given, listen, want string
		fails               bool
	}{
		"given":                     {"https://Weir.example", ":8443", "https://weir.example", false},
		"given, with a port":        {"https://weir.example:444/", "", "https://weir.example:444", false},
		"nothing, listening":        {"", "0.0.0.0:8443", "https://localhost:8443", false},
		"nothing, on the usual one": {"", ":443", "https://localhost", false},
		"nothing, on any port":      {"", "127.0.0.1:0", "", false},
		"nothing at all":            {"", "", "", false},
		"in clear":                  {"http://weir.example", "", "", true},
		"a page":                    {"https://weir.example/console", "", "", true},
		"a host":                    {"weir.example", "", "", true},
		"with a query":              {"https://weir.example?x", "", "", true},
		"with somebody":             {"https://a@weir.example", "", "", true},
	} {
		config := Config{ConsoleOrigin: c.given}
		config.Listen = c.listen
		if got, err := config.origin(); got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}
