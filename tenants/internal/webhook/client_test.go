package webhook_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants/internal/webhook"
)

var loopback = netip.MustParsePrefix("127.0.0.0/8")

// endpoint answers on this machine.
func endpoint(t *testing.T, handle http.HandlerFunc) (*httptest.Server, *webhook.Client) {
	t.Helper()
	server := httptest.NewTLSServer(handle)
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server, webhook.NewClient(webhook.Config{Networks: []netip.Prefix{loopback}, Roots: roots})
}

func message(url string, with ...httpapi.Secret) webhook.Message {
	return webhook.Message{ID: "msg_1", URL: url, Body: []byte(`{"type":"quota.exhausted"}`), At: time.Now(), With: with}
}

// With either secret the signature verifies, by the library that receivers use.
func TestBothSecretsSign(t *testing.T) {
	all := keys(t, first)
	of := webhook.SecretName{Key: all.Current(), Endpoint: "whk_1", Generation: 2}
	current := secret(t, all, of)
	of.Generation = 1
	old := secret(t, all, of)
	server, client := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		for _, has := range []httpapi.Secret{current, old} {
			receiver, _ := standardwebhooks.NewWebhook(has.Reveal())
			if verified := receiver.Verify(body, r.Header); err != nil || verified != nil || r.Header.Get("webhook-id") != "msg_1" {
				t.Errorf("%v: %v, %v", r.Header, err, verified)
			}
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "th\x00anks \xff"+strings.Repeat("!", 5000))
	})
	answer, err := client.Send(t.Context(), message(server.URL, current, old))
	if err != nil || !answer.OK() || answer.Status != 202 || !strings.HasPrefix(answer.Text, "thanks \uFFFD!") || len(answer.Text) > 1030 {
		t.Errorf("got %d %.20q of %d bytes, %v", answer.Status, answer.Text, len(answer.Text), err)
	}
}

// Redirects are not followed.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var followed atomic.Bool
	server, client := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		followed.Store(followed.Load() || r.URL.Path == "/elsewhere")
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	answer, err := client.Send(t.Context(), message(server.URL))
	if !errors.Is(err, webhook.ErrRedirect) || answer.OK() || answer.Status != 307 || followed.Load() {
		t.Errorf("got %d, %v; followed: %t", answer.Status, err, followed.Load())
	}
}

// Endless headers are not read.
func TestHeadersAreBounded(t *testing.T) {
	server, client := endpoint(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Large", strings.Repeat("x", 64<<10)) })
	if answer, err := client.Send(t.Context(), message(server.URL)); err == nil || answer.Status != 0 {
		t.Errorf("got %d, %v", answer.Status, err)
	}
}

// A name is judged by its address when the connection is made: one that
// leads to this network reaches nothing, with TLS and without.
func TestNamesOfInternalAddresses(t *testing.T) {
	var reached atomic.Bool
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	secure, plain := httptest.NewTLSServer(handler), httptest.NewServer(handler)
	defer secure.Close()
	defer plain.Close()
	client := webhook.NewClient(webhook.Config{})
	for _, server := range []*httptest.Server{secure, plain} {
		address := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
		if _, err := client.Send(t.Context(), message(address)); !errors.Is(err, webhook.ErrUnreachable) || reached.Load() {
			t.Errorf("%s: %v, reached: %t", address, err, reached.Load())
		}
	}
}

// Without TLS only the configured networks are reached.
func TestPlaintextOnlyToConfiguredNetworks(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	for network, reachable := range map[string]bool{"127.0.0.0/8": true, "10.0.0.0/8": false} {
		client := webhook.NewClient(webhook.Config{Networks: []netip.Prefix{netip.MustParsePrefix(network)}})
		if answer, err := client.Send(t.Context(), message(server.URL)); answer.OK() != reachable || (err == nil) != reachable {
			t.Errorf("with %s: %d, %v", network, answer.Status, err)
		}
	}
}

// A URL that is visibly not public is refused when it is configured.
func TestCheckURL(t *testing.T) {
	public, home := webhook.NewClient(webhook.Config{}), webhook.NewClient(webhook.Config{Networks: []netip.Prefix{loopback}})
	for address, want := range map[string][2]bool{ // without networks, with networks
		"https://hooks.example/weir":            {true, true},
		"https://hooks.example:8443/weir":       {true, true},
		"https://8.8.8.8/":                      {true, true},
		"https://[2606:4700::1]:1024/":          {true, true},
		"https://hooks.example:25/":             {false, false},
		"https://hooks.example:80/":             {false, false},
		"http://hooks.example/":                 {false, true}, // reaches only 127.0.0.0/8
		"http://127.0.0.1:80/":                  {false, true},
		"https://127.0.0.1/":                    {false, true},
		"https://[::ffff:127.0.0.1]/":           {false, true},
		"https://[::1]/":                        {false, false},
		"https://10.0.0.1/":                     {false, false},
		"https://172.16.9.9/":                   {false, false},
		"https://192.168.0.1/":                  {false, false},
		"https://100.64.0.1/":                   {false, false},
		"https://169.254.169.254/latest":        {false, false},
		"https://[fd00:ec2::254]/":              {false, false},
		"https://[fe80::1]/":                    {false, false},
		"https://[64:ff9b::a9fe:a9fe]/":         {false, false},
		"https://[2002:7f00:1::]/":              {false, false},
		"https://[::ffff:10.0.0.1]/":            {false, false},
		"https://224.0.0.1/":                    {false, false},
		"https://[ff02::1]/":                    {false, false},
		"https://0.0.0.0/":                      {false, false},
		"https://255.255.255.255/":              {false, false},
		"ftp://hooks.example/":                  {false, false},
		"hooks.example":                         {false, false},
		"https:///weir":                         {false, false},
		"https://hooks.example:99999999999999/": {false, false},
		"https://hooks.0x.example/":             {true, true},
		"https://4711.example/":                 {true, true},
		"https://hooks.example./":               {false, false},
		"https://./":                            {false, false},
		"https://hooks..example/":               {false, false},
		"https://2130706433/":                   {false, false}, // 127.0.0.1, as the next ones
		"https://0x7f000001/":                   {false, false},
		"https://0x7f.1/":                       {false, false},
		"https://0X7F.0.0.0x1/":                 {false, false},
		"https://0177.0.0.1/":                   {false, false},
		"https://127.1/":                        {false, false},
		"https://127.0.0.1./":                   {false, false},
		"https://0x/":                           {false, false}, // 0.0.0.0
		"https://hooks.0/":                      {false, false},
		"https://1.1.1.1.1/":                    {false, false},
		"https://localhost/":                    {false, true}, // reaches only 127.0.0.0/8, as the next ones
		"https://LocalHost:8443/":               {false, true},
		"https://hooks.localhost/":              {false, true},
		"https://printer.local/":                {false, true},
		"https://metadata.google.internal/":     {false, true},
		"https://router.home.arpa/":             {false, true},
		"https://receiver:8443/":                {false, true},
	} {
		for i, client := range []*webhook.Client{public, home} {
			if err := client.CheckURL(address); (err == nil) != want[i] {
				t.Errorf("%s: %v, want accepted: %t", address, err, want[i])
			}
		}
	}
}

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
