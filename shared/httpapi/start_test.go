package httpapi

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// start runs server on a local address until the test ends; the
// configuration trusts its certificate.
func start(t testing.TB, server *Server) (address string, trust *tls.Config) {
	t.Helper()
	lender := httptest.NewTLSServer(nil) // lends its certificate
	t.Cleanup(lender.Close)
	if server.TLS == nil {
		server.TLS = &tls.Config{}
	}
	server.TLS.Certificates, server.TLS.MinVersion = lender.TLS.Certificates, tls.VersionTLS12
	server.Logger, server.Clock = slog.New(slog.DiscardHandler), time.Now
	listener, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
	trust = lender.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	trust.NextProtos, trust.ServerName = nil, "example.com"
	return listener.Addr().String(), trust
}

// answer reads one answer, and its body.
func answer(t *testing.T, reader *bufio.Reader) *http.Response {
	t.Helper()
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	if _, err := io.ReadAll(response.Body); err != nil {
		t.Fatalf("half an answer: %v", err)
	}
	return response
}
