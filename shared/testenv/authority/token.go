package authority

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"testing"
	"time"
)

// An Issuer signs tokens (JWT) as an identity provider does.
type Issuer struct {
	Keys string // file with its public keys (JWKS)

	key *rsa.PrivateKey
}

// NewIssuer makes an issuer whose keys lie beside the authority's.
func (a *Authority) NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	return header + "." + claims + "." + encode(signature)
}

func text(t testing.TB, value any) []byte {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }
