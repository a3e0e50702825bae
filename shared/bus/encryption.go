package bus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// dialEncrypted connects over TLS with the files of this moment.
func (a Access) dialEncrypted(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	config, err := a.encryption(host)
	if err != nil {
		return nil, err
	}
	socket, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(socket, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		socket.Close()
		return nil, a.unencrypted(err)
	}
	return &tlsConn{Conn: conn, access: a}, nil
}

// encryption returns the TLS settings for a host, from the files
// of this moment.
func (a Access) encryption(host string) (*tls.Config, error) {
	config := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	var err error
	if config.RootCAs, err = a.authorities(); err != nil {
		return nil, err
	}
	if a.CertFile == "" {
		return config, nil
	}
	certificate, err := tls.LoadX509KeyPair(a.CertFile, a.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("cannot use the certificate for the brokers (WEIR_BROKERS_CERT_FILE, WEIR_BROKERS_KEY_FILE): %w", err)
	}
	// Not by Certificates: it sends none if the brokers name other
	// authorities, and they then report only that one is missing.
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
	return config, nil
}

// authorities returns those of the file; nil, the system's, for no file.
func (a Access) authorities() (*x509.CertPool, error) {
	if a.CAFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(a.CAFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the brokers' authorities (WEIR_BROKERS_CA_FILE): %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("the file %q (WEIR_BROKERS_CA_FILE) holds no certificate", a.CAFile)
	}
	return roots, nil
}

// unencrypted names the wrong certificate of a failed handshake, and
// the setting to change.
func (a Access) unencrypted(err error) error {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var other x509.HostnameError
	var plain tls.RecordHeaderError
	why := "they cannot agree on how to speak it"
	switch {
	case errors.As(err, &unknown):
		why = fmt.Sprintf("no authority of %s has signed the broker's certificate, name the file with its authority in WEIR_BROKERS_CA_FILE", a.trusts())
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		why = "the broker's certificate is out of date, replace it at the broker"
	case errors.As(err, &other):
		why = "the broker's certificate is not for the name that WEIR_BROKERS or the broker's advertised.listeners gives it"
	case errors.As(err, &plain), hungUp(err):
		why = "it speaks none at this port, or has just ended: name another port in WEIR_BROKERS, or unset WEIR_BROKERS_TLS and the files beside it"
	case isRefusal(err):
		return a.refused(err)
	}
	return fmt.Errorf("%w: %s: %w", ErrEncryption, why, err)
}

func (a Access) trusts() string {
	if a.CAFile == "" {
		return "this system"
	}
	return fmt.Sprintf("%q (WEIR_BROKERS_CA_FILE)", a.CAFile)
}

// tlsConn is a connection over TLS. A broker that refuses the
// client's certificate does so after the handshake, in place of the
// first answer: by an alert, or, as it has not read the request, by a
// reset that overtakes the alert.
type tlsConn struct {
	net.Conn

	access   Access
	answered atomic.Bool
}

func (c *tlsConn) Read(p []byte) (n int, err error) {
	n, err = c.Conn.Read(p)
	if n > 0 && !c.answered.Load() {
		c.answered.Store(true)
	}
	return n, c.explained(err)
}

func (c *tlsConn) Write(p []byte) (n int, err error) {
	n, err = c.Conn.Write(p)
	return n, c.explained(err)
}

func (c *tlsConn) explained(err error) error {
	if err != nil && (isRefusal(err) || !c.answered.Load() && hungUp(err)) {
		return c.access.refused(err)
	}
	return err
}

// isRefusal reports whether the other side ended TLS by an alert.
func isRefusal(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "remote error"
}

// hungUp reports that the other side closed the connection without an answer.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// refused explains why a broker may refuse the client's certificate.
func (a Access) refused(err error) error {
	if a.CertFile == "" {
		return fmt.Errorf("%w: it ends the connection: if it asks for a certificate, name one with WEIR_BROKERS_CERT_FILE and WEIR_BROKERS_KEY_FILE: %w",
			ErrEncryption, err)
	}
	return fmt.Errorf("%w: it refuses the certificate of WEIR_BROKERS_CERT_FILE, %s: %w", ErrEncryption, a.shows(), err)
}

// shows describes the certificate of the file.
func (a Access) shows() string {
	pair, err := tls.LoadX509KeyPair(a.CertFile, a.KeyFile)
	if err != nil {
		return "which cannot be read any more"
	}
	return fmt.Sprintf("of %q by %q, valid until %s: replace it where that is past, else let the broker's truststore have this authority",
		pair.Leaf.Subject, pair.Leaf.Issuer, pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
}
