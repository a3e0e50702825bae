package bus

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// Access is how a process signs in at the brokers, and whether over
// TLS. By default it does neither. Files are read for each connection,
// so that replacing them needs no restart.
type Access struct {
	User         string `help:"User at the brokers. Without one they are used without signing in." env:"WEIR_BROKERS_USER"`
	PasswordFile string `help:"File with the password of the user at the brokers." env:"WEIR_BROKERS_PASSWORD_FILE"`
	TokenFile    string `help:"File with the token that signs in by OAUTHBEARER, instead of a user." env:"WEIR_BROKERS_TOKEN_FILE"`
	Mechanism    string `help:"How to sign in: PLAIN and OAUTHBEARER show the secret to the other side, SCRAM does not. OAUTHBEARER needs TLS." env:"WEIR_BROKERS_MECHANISM" enum:"SCRAM-SHA-512,SCRAM-SHA-256,PLAIN,OAUTHBEARER" default:"SCRAM-SHA-512"`

	TLS      bool   `name:"tls" help:"Speak TLS with the brokers and verify their certificates. Each file below turns it on, too." env:"WEIR_BROKERS_TLS"`
	CAFile   string `help:"Authorities that the brokers' certificates are checked against, PEM; the system's when empty." env:"WEIR_BROKERS_CA_FILE"`
	CertFile string `help:"PEM file with the certificate that this process shows the brokers, and those up to its authority." env:"WEIR_BROKERS_CERT_FILE"`
	KeyFile  string `help:"PEM file with the key of that certificate." env:"WEIR_BROKERS_KEY_FILE"`
}

// The default mechanism of signing in, and the one that takes a token.
const (
	defaultMechanism = "SCRAM-SHA-512"
	bearerMechanism  = "OAUTHBEARER"
)

// Encrypts reports whether connections are made over TLS.
func (a Access) Encrypts() bool {
	return a.TLS || a.CAFile != "" || a.CertFile != "" || a.KeyFile != ""
}

// SignsIn reports whether connections authenticate.
func (a Access) SignsIn() bool { return a.User != "" || a.TokenFile != "" }

// Validate returns what is wrong with the settings.
func (a Access) Validate() error {
	return errors.Join(a.validateUser(), a.validateToken(), a.validateCertificate())
}

func (a Access) validateUser() error {
	if a.User == "" && a.PasswordFile != "" {
		return errors.New("WEIR_BROKERS_PASSWORD_FILE is set, but WEIR_BROKERS_USER is not: name the user whose password it is")
	}
	if a.User != "" && a.PasswordFile == "" {
		return errors.New("WEIR_BROKERS_USER is set, but WEIR_BROKERS_PASSWORD_FILE is not: name the file that holds the user's password")
	}
	return nil
}

func (a Access) validateToken() error {
	bearer := a.mechanismName() == bearerMechanism
	switch {
	case bearer && a.User != "":
		return errors.New("WEIR_BROKERS_USER is set, and WEIR_BROKERS_MECHANISM is OAUTHBEARER, where the token names the user: unset one")
	case bearer && a.TokenFile == "":
		return errors.New("WEIR_BROKERS_MECHANISM is OAUTHBEARER, but WEIR_BROKERS_TOKEN_FILE is not set: name the file that holds the token")
	case !bearer && a.TokenFile != "":
		return errors.New("WEIR_BROKERS_TOKEN_FILE is set, but WEIR_BROKERS_MECHANISM is not OAUTHBEARER: no other takes a token")
	case bearer && !a.Encrypts():
		return errors.New("WEIR_BROKERS_MECHANISM is OAUTHBEARER without TLS, which shows the token to the network: set WEIR_BROKERS_TLS or WEIR_BROKERS_CA_FILE")
	}
	return nil
}

func (a Access) validateCertificate() error {
	if (a.CertFile == "") != (a.KeyFile == "") {
		return errors.New("one of WEIR_BROKERS_CERT_FILE and WEIR_BROKERS_KEY_FILE is set: a certificate and its key go together")
	}
	return nil
}

// DefaultDialTimeout limits a dial without a Timeout.
const DefaultDialTimeout = 5 * time.Second

// A Dialer connects to brokers.
type Dialer = kafka.Dialer

// Dialer returns a dialer for the settings; nil if all are defaults. It
// fails if a file is missing or holds something else.
func (a Access) Dialer() (*Dialer, error) {
	if err := a.Validate(); err != nil || !a.Encrypts() && !a.SignsIn() {
		return nil, err
	}
	dialer := &Dialer{ClientID: "weir", Timeout: DefaultDialTimeout}
	if a.Encrypts() {
		if _, err := a.encryption(""); err != nil {
			return nil, err
		}
		dialer.DialFunc = a.dialEncrypted
	}
	if a.SignsIn() {
		mechanism := &freshSecret{access: a}
		if _, err := mechanism.current(); err != nil {
			return nil, err
		}
		dialer.SASLMechanism = mechanism
	}
	return dialer, nil
}

func (a Access) mechanismName() string { return cmp.Or(a.Mechanism, defaultMechanism) }

// freshSecret signs in with the secret that the file holds then. As long as that
// stays, the mechanism does: SCRAM's derives its keys from a password once,
// which takes milliseconds.
type freshSecret struct {
	access Access

	mu     sync.Mutex
	secret string
	last   sasl.Mechanism // of that secret
}

// Name implements sasl.Mechanism.
func (r *freshSecret) Name() string { return r.access.mechanismName() }

// Start implements sasl.Mechanism.
func (r *freshSecret) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	mechanism, err := r.current()
	if err != nil {
		return nil, nil, err
	}
	return mechanism.Start(ctx)
}

// current returns how to sign in now.
func (r *freshSecret) current() (sasl.Mechanism, error) {
	secret, err := r.access.secret()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != nil && r.secret == secret {
		return r.last, nil
	}
	mechanism, err := r.access.mechanism(secret)
	if err == nil {
		r.secret, r.last = secret, mechanism
	}
	return mechanism, err
}

// secret is what the file holds.
func (a Access) secret() (string, error) {
	if a.TokenFile != "" {
		return secretIn(a.TokenFile, "token", "WEIR_BROKERS_TOKEN_FILE")
	}
	return secretIn(a.PasswordFile, fmt.Sprintf("password of user %q", a.User), "WEIR_BROKERS_PASSWORD_FILE")
}

func secretIn(file, what, setting string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot read the %s at the brokers (%s): %w", what, setting, err)
	}
	secret := strings.TrimRight(string(raw), "\r\n")
	if secret == "" {
		kind, _, _ := strings.Cut(what, " ")
		return "", fmt.Errorf("the file %q (%s) holds no %s", file, setting, kind)
	}
	return secret, nil
}

func (a Access) mechanism(secret string) (sasl.Mechanism, error) {
	switch a.mechanismName() {
	case bearerMechanism:
		return bearer{secret}, nil
	case defaultMechanism:
		return scram.Mechanism(scram.SHA512, a.User, secret)
	case "SCRAM-SHA-256":
		return scram.Mechanism(scram.SHA256, a.User, secret)
	case "PLAIN":
		return plain.Mechanism{Username: a.User, Password: secret}, nil
	}
	return nil, fmt.Errorf("WEIR_BROKERS_MECHANISM is %q: it can be SCRAM-SHA-512, SCRAM-SHA-256, PLAIN or OAUTHBEARER", a.Mechanism)
}

// bearer signs in with a token (RFC 7628), which names the user and expires.
type bearer struct{ token string }

// Name implements sasl.Mechanism.
func (bearer) Name() string { return bearerMechanism }

// Start implements sasl.Mechanism.
func (b bearer) Start(context.Context) (sasl.StateMachine, []byte, error) {
	return &bearerSession{}, []byte("n,,\x01auth=Bearer " + b.token + "\x01\x01"), nil
}

// bearerSession is one sign-in.
type bearerSession struct{ refusal []byte }

// Next implements sasl.StateMachine. A server that refuses gives a
// reason, and ends the sign-in only after one byte in answer to it.
func (b *bearerSession) Next(_ context.Context, challenge []byte) (done bool, response []byte, err error) {
	if b.refusal != nil {
		return false, nil, fmt.Errorf("%w: %s", kafka.SASLAuthenticationFailed, b.refusal)
	}
	if len(challenge) == 0 {
		return true, nil, nil
	}
	b.refusal = challenge
	return false, []byte{1}, nil
}

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
