package passkeytest

import (
	"testing"

	"github.com/descope/virtualwebauthn"
)

// Site is the site of the tests' passkeys.
var Site = virtualwebauthn.RelyingParty{ID: "weir.example", Name: "Weir", Origin: "https://weir.example"}

// A Device is an authenticator with one passkey.
type Device struct {
	Authenticator virtualwebauthn.Authenticator
	Credential    virtualwebauthn.Credential
}

// New has a new device create a passkey
// for a challenge, and returns its answer.
func New(t *testing.T, question string) (d *Device, answer string) {
	t.Helper()
	options, err := virtualwebauthn.ParseAttestationOptions(question)
	if err != nil || options.RelyingPartyID != Site.ID {
		t.Fatalf("asked %s: %v", question, err)
	}
	d = &Device{
		Authenticator: virtualwebauthn.NewAuthenticatorWithOptions(virtualwebauthn.AuthenticatorOptions{UserHandle: []byte(options.UserID)}),
		Credential:    newCredential(),
	}
	return d, virtualwebauthn.CreateAttestationResponse(Site, d.Authenticator, d.Credential, *options)
}

// coseKeyLength is the length of a P-256 public
// key in COSE form, each coordinate 32 bytes long.
const coseKeyLength = 77

// newCredential makes a key. The tests' authenticator drops leading zeros of
// a coordinate, one time in 128; real ones don't, and such a key is refused.
func newCredential() virtualwebauthn.Credential {
	for {
		if made := virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2); len(made.Key.AttestationData()) == coseKeyLength {
			return made
		}
	}
}

// Answer is the form that proves to a site, the right
// one or another, that the device has its passkey.
func (d *Device) Answer(t *testing.T, site virtualwebauthn.RelyingParty, question string) map[string]string {
	t.Helper()
	options, err := virtualwebauthn.ParseAssertionOptions(question)
	if err != nil {
		t.Fatalf("asked %s: %v", question, err)
	}
	d.Credential.Counter++
	return map[string]string{"credential": virtualwebauthn.CreateAssertionResponse(site, d.Authenticator, d.Credential, *options)}
}
