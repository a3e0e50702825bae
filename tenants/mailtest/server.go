package mailtest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants/internal/mail"
)

// Password is Server's.
const Password = "sesame"

// A Server is a mail server that keeps what it accepts. It refuses
// nobody@ and verbose@ permanently, and busy@ temporarily.
type Server struct {
	Address string      // host:port
	Trust   *tls.Config // with its authority; nil: no TLS

	mu    sync.Mutex
	taken []string
}

// Open starts a server with TLS that demands Password.
func Open(t testing.TB) *Server {
	t.Helper()
	certified := httptest.NewTLSServer(nil) // has a certificate for 127.0.0.1
	certified.Close()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	server := &Server{Trust: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	server.serve(t, certified.TLS)
	return server
}

// OpenPlain starts a server without TLS and password, like one on
// the machine itself.
func OpenPlain(t testing.TB) *Server {
	t.Helper()
	server := &Server{}
	server.serve(t, nil)
	return server
}

func (o *Server) serve(t testing.TB, certified *tls.Config) {
	t.Helper()
	server := smtp.NewServer(o)
	server.TLSConfig = certified
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Must(t, err)
	o.Address = listener.Addr().String()
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

// NewSession implements smtp.Backend.
func (o *Server) NewSession(*smtp.Conn) (smtp.Session, error) {
	return &visit{server: o, known: o.Trust == nil}, nil
}

type visit struct {
	server *Server
	known  bool
}

func (v *visit) AuthMechanisms() []string { return []string{sasl.Plain} }

func (v *visit) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, _, password string) error {
		if v.known = password == Password; !v.known {
			return errors.New("wrong")
		}
		return nil
	}), nil
}

func (v *visit) Mail(string, *smtp.MailOptions) error {
	if !v.known {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (v *visit) Rcpt(to string, _ *smtp.RcptOptions) error {
	switch {
	case strings.HasPrefix(to, "nobody@"):
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	case strings.HasPrefix(to, "verbose@"):
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: strings.Repeat("拒否", 200)}
	case strings.HasPrefix(to, "busy@"):
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "try again"}
	}
	return nil
}

func (v *visit) Data(from io.Reader) error {
	text, err := io.ReadAll(from)
	v.server.mu.Lock()
	defer v.server.mu.Unlock()
	v.server.taken = append(v.server.taken, string(text))
	return err
}

func (v *visit) Reset() {}

func (v *visit) Logout() error { return nil }

// Taken lists the accepted messages, as they were sent.
func (o *Server) Taken() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.taken)
}

// Forget drops the accepted messages.
func (o *Server) Forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken = nil
}

// Server returns a client of the server with a password.
func (o *Server) Server(t testing.TB, password string) *mail.Server {
	t.Helper()
	server, err := mail.ParseServer(httpapi.Secret("smtp://weir:"+password+"@"+o.Address), "Weir <weir@example.com>", o.Trust)
	testenv.Must(t, err)
	return server
}
