package localca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/weirlog/weir/shared/atomicfile"
)

// Lifetimes. A certificate is replaced once less than renewBefore of
// its lifetime is left.
const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	serverLifetime    = 397 * 24 * time.Hour // the longest that browsers accept
	renewBefore       = 30 * 24 * time.Hour
)

// Files are the authority's and its server certificate's. Only the
// owner can read keys.
type Files struct {
	CA, CAKey         string
	Server, ServerKey string
}

// In returns the names of the files in dir.
func In(dir string) Files {
	return Files{
		CA: filepath.Join(dir, "ca.pem"), CAKey: filepath.Join(dir, "ca.key"),
		Server: filepath.Join(dir, "server.pem"), ServerKey: filepath.Join(dir, "server.key"),
	}
}

// Ensure creates what is missing in dir or about to expire at now: the
// authority, and a certificate for localhost, 127.0.0.1, ::1 and
// further hosts (names or addresses). Valid files stay, so clients need
// no new trust.
func Ensure(dir string, now time.Time, hosts ...string) (Files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Files{}, fmt.Errorf("cannot make the certificate directory: %w", err)
	}
	files := In(dir)
	authority, err := ensureAuthority(files, now)
	if err != nil {
		return Files{}, err
	}
	names := append([]string{"localhost", "127.0.0.1", "::1"}, hosts...)
	if serves(files, authority.Leaf, names, now) {
		return files, nil
	}
	return files, issue(files, authority, names, now)
}

// ensureAuthority loads the authority, or creates one if it is missing,
// about to expire, or was never whole: a power cut left empty files.
func ensureAuthority(files Files, now time.Time) (tls.Certificate, error) {
	authority, err := tls.LoadX509KeyPair(files.CA, files.CAKey)
	switch {
	case err == nil && authority.Leaf.NotAfter.Sub(now) > renewBefore:
		return authority, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !(empty(files.CA) && empty(files.CAKey)):
		return tls.Certificate{}, fmt.Errorf("the certificate authority in %q is damaged: %w; "+
			"remove the directory, another one will be made", filepath.Dir(files.CA), err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "Weir local authority"},
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	if err := create(template, nil, now, files.CA, files.CAKey); err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot make a certificate authority: %w", err)
	}
	return tls.LoadX509KeyPair(files.CA, files.CAKey)
}

func empty(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() == 0
}

// serves reports whether the server certificate is valid for names
// for some time.
func serves(files Files, authority *x509.Certificate, names []string, now time.Time) bool {
	server, err := tls.LoadX509KeyPair(files.Server, files.ServerKey)
	if err != nil || server.Leaf.NotAfter.Sub(now) <= renewBefore || server.Leaf.CheckSignatureFrom(authority) != nil {
		return false
	}
	for _, name := range names {
		if server.Leaf.VerifyHostname(name) != nil {
			return false
		}
	}
	return true
}

func issue(files Files, authority tls.Certificate, names []string, now time.Time) error {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: names[0]},
		NotAfter:    now.Add(serverLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	if err := create(template, &authority, now, files.Server, files.ServerKey); err != nil {
		return fmt.Errorf("cannot make a server certificate: %w", err)
	}
	return nil
}

// create signs template, by itself without an authority, and writes
// certificate and key.
func create(template *x509.Certificate, authority *tls.Certificate, now time.Time, certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template.NotBefore = now.Add(-time.Hour) // a client's clock may be slow
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return err
	}
	parent, signer := template, any(key)
	if authority != nil {
		parent, signer = authority.Leaf, authority.PrivateKey
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return err
	}
	keyText, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(keyFile, "PRIVATE KEY", keyText, 0o600); err != nil {
		return err
	}
	return writePEM(certFile, "CERTIFICATE", certificate, 0o644)
}

func writePEM(path, kind string, content []byte, mode fs.FileMode) error {
	return atomicfile.Write(path, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})), mode)
}
