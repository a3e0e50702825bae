package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
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
	testenv.Must(t, err)
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
	testenv.Must(t, err)
	parent, signer := template, key
	if a.certificate != nil {
		parent, signer = a.certificate, a.key
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		t.Fatal(err)
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	testenv.Must(t, err)
	certificate, err := x509.ParseCertificate(raw)
	testenv.Must(t, err)
	return certificate, key
}

func (a *Authority) write(t testing.TB, name string, text []byte) string {
	t.Helper()
	file := filepath.Join(a.dir, name)
	testenv.Must(t, os.WriteFile(file, text, 0o600))
	return file
}

func block(kind string, content []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
}

// An Issuer signs tokens (JWT) as an identity provider does.
type Issuer struct {
	Keys string // file with its public keys (JWKS)

	key *rsa.PrivateKey
}

// NewIssuer makes an issuer whose keys lie beside the authority's.
func (a *Authority) NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	testenv.Must(t, err)
	public := map[string]string{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1",
		"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
	}
	return &Issuer{a.write(t, "keys.json", text(t, map[string]any{"keys": []any{public}})), key}
}

// Token signs a token for a user and an audience.
func (i *Issuer) Token(t testing.TB, user, audience string, until time.Time) string {
	t.Helper()
	header := encode(text(t, map[string]string{"alg": "RS256", "kid": "1"}))
	claims := encode(text(t, map[string]any{"sub": user, "aud": audience, "iat": until.Add(-time.Hour).Unix(), "exp": until.Unix(), "scope": "kafka"}))
	sum := sha256.Sum256([]byte(header + "." + claims))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	testenv.Must(t, err)
	return header + "." + claims + "." + encode(signature)
}

func text(t testing.TB, value any) []byte {
	t.Helper()
	raw, err := json.Marshal(value)
	testenv.Must(t, err)
	return raw
}

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }
