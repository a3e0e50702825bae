package process

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The health check succeeds only if the process can serve, and else
// passes on the reason.
func TestReady(t *testing.T) {
	var status int
	var body string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	check := ready{Listen: server.Listener.Addr().String(), Timeout: 30 * time.Second}
	for _, c := range []struct {
		status     int
		body, want string
	}{
		{200, `{"status":"ready"}`, ""},
		{500, `{"detail":"Not ready yet: database."}`, "500 Internal Server Error: Not ready yet: database."},
		{500, `<html>`, "500 Internal Server Error: no reason given"},
	} {
		status, body = c.status, c.body
		err := check.Run(t.Context())
		if got := text(err); got != c.want {
			t.Errorf("%d %s: %q", c.status, c.body, got)
		}
	}
	server.Close()
	if err := check.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "no answer: ") {
		t.Errorf("nobody listens: %v", err)
	}
}

// A listener on every address is asked on this machine.
func TestLocal(t *testing.T) {
	for listen, want := range map[string]string{
		":8443": "localhost:8443", "0.0.0.0:1": "localhost:1", "[::]:1": "localhost:1", "10.0.0.7:8443": "10.0.0.7:8443", "weir.example:1": "weir.example:1",
	} {
		if got, err := local(listen); got != want || err != nil {
			t.Errorf("%s: %q, %v", listen, got, err)
		}
	}
	if _, err := local("8443"); err == nil {
		t.Error("an address without a colon was taken")
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
