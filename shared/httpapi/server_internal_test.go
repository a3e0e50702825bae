package httpapi

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/testenv"
)

// A renewed certificate is used without a restart, a half-written one
// is not, and each error is logged once.
func TestRenewedCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")
	var log bytes.Buffer
	first, second, third := newPair(t, 1), newPair(t, 2), newPair(t, 3)
	put(t, cert, first.cert)
	put(t, key, first.key)
	config, err := LoadTLS(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	testenv.Must(t, err)
	serves := func(when string, serial int64) {
		t.Helper()
		for range 2 {
			got, err := config.GetCertificate(nil)
			if err != nil || got.Leaf.SerialNumber.Int64() != serial {
				t.Fatalf("%s: %v, %v", when, got.Leaf.SerialNumber, err)
			}
		}
	}
	serves("at first", 1)
	put(t, cert, second.cert)
	serves("with the key still to come", 1)
	put(t, key, second.key)
	serves("renewed", 2)
	put(t, cert, third.cert[:100])
	serves("cut off", 2)
	testenv.Must(t, os.Remove(cert))
	serves("gone", 2)
	put(t, cert, third.cert)
	put(t, key, third.key)
	serves("renewed again", 3)
	if n := strings.Count(log.String(), "can't be read"); n != 3 {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
}

// A server serves the certificate in its files.
func TestServedCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")
	replace := func(serial int64) {
		pair := newPair(t, serial)
		put(t, cert, pair.cert)
		put(t, key, pair.key)
	}
	replace(1)
	config, err := LoadTLS(cert, key, slog.New(slog.DiscardHandler))
	testenv.Must(t, err)
	listener, err := Listen("127.0.0.1:0")
	testenv.Must(t, err)
	metrics := prometheus.NewRegistry()
	server := &Server{Handler: ok, TLS: config, Logger: slog.New(slog.DiscardHandler), Clock: time.Now, Metrics: metrics}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	for serial := range int64(3) {
		replace(serial + 2)
		conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		testenv.Must(t, err)
		if got := conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != serial+2 {
			t.Errorf("served certificate %d instead of %d", got, serial+2)
		}
		if shown, want := expiry(t, metrics), conn.ConnectionState().PeerCertificates[0].NotAfter.Unix(); shown != want {
			t.Errorf("the metric says that it expires at %d instead of %d", shown, want)
		}
		conn.Close()
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// expiry returns the shown expiry of the certificate in use.
func expiry(t *testing.T, metrics *prometheus.Registry) int64 {
	t.Helper()
	families, err := metrics.Gather()
	testenv.Must(t, err)
	for _, family := range families {
		if family.GetName() == "weir_tls_certificate_expiry_timestamp_seconds" {
			return int64(family.GetMetric()[0].GetGauge().GetValue())
		}
	}
	t.Fatal("no metric says when the certificate expires")
	return 0
}

// At the start a certificate is required.
func TestNoCertificate(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "server.pem")
	if _, err := LoadTLS(missing, missing, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), missing) {
		t.Error(err)
	}
}

type pair struct{ cert, key []byte }

func newPair(t *testing.T, serial int64) pair {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testenv.Must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Duration(serial) * time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	testenv.Must(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(private)
	testenv.Must(t, err)
	return pair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})}
}

// put replaces a file, as tools that renew certificates do.
func put(t *testing.T, name string, content []byte) {
	t.Helper()
	testenv.Must(t, os.WriteFile(name+".new", content, 0o600))
	testenv.Must(t, os.Rename(name+".new", name))
}
