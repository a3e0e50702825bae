package webhook_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/weirlog/weir/tenants/internal/webhook"
)

// Reasons reveal nothing of a network, nor which of its names exist.
func TestReason(t *testing.T) {
	lookup := &net.DNSError{Err: "no such host", Name: "db.internal", Server: "10.0.0.2:53", IsNotFound: true}
	home := fmt.Errorf("10.0.0.7:443: %w", webhook.ErrUnreachable)
	reset := &net.OpError{Op: "read", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 443}, Err: errors.New("connection reset by db.internal")}
	for _, test := range []struct {
		err  error
		want string
	}{
		{&net.OpError{Op: "dial", Net: "tcp", Err: lookup}, "no public address"},
		{&net.OpError{Op: "dial", Net: "tcp", Err: home}, "no public address"},
		{&net.OpError{Op: "dial", Net: "tcp", Addr: reset.Addr, Err: errors.New("connection refused")}, "takes no connection"},
		{&net.OpError{Op: "read", Net: "tcp", Addr: reset.Addr, Err: os.ErrDeadlineExceeded}, "in time"},
		{reset, "no answer that can be read"},
		{fmt.Errorf("key %q: %w", "10.internal", webhook.ErrUnknownKey), "rotate the secret"},
	} {
		reason := webhook.Reason(test.err)
		if !strings.Contains(reason, test.want) || strings.Contains(reason, "internal") || strings.Contains(reason, "10.") {
			t.Errorf("%v is shown as %q, want %q", test.err, reason, test.want)
		}
	}
	if unknown, private := webhook.Reason(lookup), webhook.Reason(home); unknown != private {
		t.Errorf("a name that nobody has is %q, one that leads home %q", unknown, private)
	}
}

// The log says more than a receiver sees, and nothing of the endpoint.
func TestCause(t *testing.T) {
	at := &net.TCPAddr{IP: net.IPv4(203, 0, 113, 7), Port: 443}
	for _, test := range []struct {
		err  error
		want string
	}{
		{&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "hooks.acme.example"}}, "no such host"},
		{&net.OpError{Op: "dial", Net: "tcp", Addr: at, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, "connection refused"},
		{&net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("203.0.113.7:25: %w", webhook.ErrUnreachable)}, "public network only"},
		{&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "hooks.acme.example"}}, "certificate is not valid"},
		{fmt.Errorf("key %q: %w", "k1", webhook.ErrUnknownKey), `key "k1"`},
	} {
		cause := webhook.LogReason(test.err)
		if !strings.Contains(cause, test.want) || strings.Contains(cause, "acme") || strings.Contains(cause, "203.") {
			t.Errorf("%v is logged as %q, want %q", test.err, cause, test.want)
		}
	}
}

// Every failure has a reason, and no error has the URL.
func TestReasonsOfAttempts(t *testing.T) {
	handle := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hidden-redirect" {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		w.Header().Set("X-Large", strings.Repeat("x", 64<<10))
	}
	server, client := endpoint(t, handle)
	closed := httptest.NewServer(nil)
	closed.Close()
	distrustful := webhook.NewClient(webhook.Config{Networks: []netip.Prefix{loopback}})
	for _, test := range []struct {
		client    *webhook.Client
		url, want string
	}{
		{client, server.URL + "/hidden-redirect", "redirect"},
		{client, server.URL + "/hidden", "no answer that can be read"},
		{client, closed.URL + "/hidden", "takes no connection"},
		{distrustful, server.URL + "/hidden", "certificate is not valid"},
		{webhook.NewClient(webhook.Config{}), server.URL + "/hidden", "no public address"},
		{client, "https://%hidden", "no answer that can be read"},
	} {
		_, err := test.client.Send(t.Context(), message(test.url))
		if err == nil || strings.Contains(err.Error(), "hidden") || !strings.Contains(webhook.Reason(err), test.want) {
			t.Errorf("%s: %v, shown as %q, want %q", test.url, err, webhook.Reason(err), test.want)
		}
	}
}
