package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An Authority signs certificates.
type Authority struct {
	File string // its own certificate, PEM

	dir         string
	now         time.Time
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// A Certificate in files, PEM.
type Certificate struct {
	Cert, Key string
	Both      string // key and certificate in one file, as Apache Kafka takes them
}

// New makes an authority, valid around now, whose files are removed
// with the test.
func New(t testing.TB, name string, now time.Time) *Authority {
	t.Helper()
	a := &Authority{dir: t.TempDir(), now: now}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	a.certificate, a.key = a.sign(t, template)
	a.File = a.write(t, "ca.pem", block("CERTIFICATE", a.certificate.Raw))
	return a
}

// Issue makes a certificate for servers at hosts and for clients, valid
// from yesterday to until.
func (a *Authority) Issue(t testing.TB, name string, until time.Time, hosts ...string) Certificate {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: a.now.Add(-24 * time.Hour), NotAfter: until,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	certificate, key := a.sign(t, template)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, private := block("CERTIFICATE", certificate.Raw), block("PRIVATE KEY", raw)
	unique := name + rand.Text()[:6]
	return Certificate{
		Cert: a.write(t, unique+".pem", public), Key: a.write(t, unique+".key", private), Both: a.write(t, unique+".both", append(private, public...)),
	}
}

// sign makes a key and signs a certificate for it; the authority's
// own is self-signed.
func (a *Authority) sign(t testing.TB, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := template, key
	if a.certificate != nil {
		parent, signer = a.certificate, a.key
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		t.Fatal(err)
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

func (a *Authority) write(t testing.TB, name string, text []byte) string {
	t.Helper()
	file := filepath.Join(a.dir, name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func block(kind string, content []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
}
