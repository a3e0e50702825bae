package localca_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/testenv"
)

// A client that trusts only the authority connects under every local name.
func TestCertificateServesLocalNames(t *testing.T) {
	files := ensure(t, t.TempDir(), time.Now())
	for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
		if err := handshake(t, files, name); err != nil {
			t.Errorf("as %s: %v", name, err)
		}
	}
	if err := handshake(t, files, "example.com"); err == nil {
		t.Error("the certificate serves example.com too")
	}
}

// Only the owner can read keys; a second start changes nothing; an old
// certificate is renewed under the same authority.
func TestEnsureKeepsAndRenews(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	files := ensure(t, dir, now)
	for _, key := range []string{files.CAKey, files.ServerKey} {
		info, err := os.Stat(key)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", key, info.Mode(), err)
		}
	}
	authority, server := read(t, files.CA), read(t, files.Server)
	ensure(t, dir, now.AddDate(0, 6, 0))
	if read(t, files.CA) != authority || read(t, files.Server) != server {
		t.Error("a good certificate was replaced")
	}
	ensure(t, dir, now.AddDate(1, 0, 10))
	if read(t, files.CA) != authority || read(t, files.Server) == server {
		t.Error("want a new certificate of the old authority once it is about to expire")
	}
}

// Empty files, which a power cut leaves, are created again; an authority of
// which something is left is refused, as clients may trust it.
func TestEmptyFilesAreCreatedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		emptied func(files localca.Files) []string
		refused bool
	}{
		"all":                {func(f localca.Files) []string { return []string{f.CA, f.CAKey, f.Server, f.ServerKey} }, false},
		"the server's":       {func(f localca.Files) []string { return []string{f.Server, f.ServerKey} }, false},
		"half the authority": {func(f localca.Files) []string { return []string{f.CA} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range test.emptied(ensure(t, dir, time.Now())) {
				testenv.Must(t, os.Truncate(file, 0))
			}
			files, err := localca.Ensure(dir, time.Now())
			if err == nil {
				err = handshake(t, files, "localhost")
			}
			if (err != nil) != test.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

func ensure(t *testing.T, dir string, now time.Time) localca.Files {
	t.Helper()
	files, err := localca.Ensure(dir, now)
	testenv.Must(t, err)
	return files
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	testenv.Must(t, err)
	return string(text)
}

func handshake(t *testing.T, files localca.Files, name string) error {
	t.Helper()
	certificate, err := tls.LoadX509KeyPair(files.Server, files.ServerKey)
	testenv.Must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(read(t, files.CA)))
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	testenv.Must(t, err)
	defer listener.Close()
	go serve(listener)
	conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS12})
	if err != nil {
		return err
	}
	return conn.Close()
}

// serve makes handshakes.
func serve(listener net.Listener) {
	conn, err := listener.Accept()
	if err != nil {
		return
	}
	_ = conn.(*tls.Conn).Handshake()
	_ = conn.Close()
}
