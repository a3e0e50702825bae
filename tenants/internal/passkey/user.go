package passkey

import (
	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/weirlog/weir/tenants"
)

// user is a holder as WebAuthn's user. Devices store
// the member's id as handle, which reveals nothing.
type user struct{ Holder }

func (u user) WebAuthnID() []byte          { return []byte(u.ID) }
func (u user) WebAuthnName() string        { return u.Email }
func (u user) WebAuthnDisplayName() string { return u.Name }

func (u user) WebAuthnCredentials() []webauthn.Credential {
	credentials := make([]webauthn.Credential, len(u.Passkeys))
	for i, passkey := range u.Passkeys {
		credentials[i] = credentialOf(passkey.Credential)
	}
	return credentials
}

func credentialOf(public tenants.PublicCredential) webauthn.Credential {
	credential := webauthn.Credential{
		ID: public.ID, PublicKey: public.PublicKey,
		Flags:         webauthn.CredentialFlags{BackupEligible: public.BackupEligible, BackupState: public.BackedUp},
		Authenticator: webauthn.Authenticator{AAGUID: public.Model, SignCount: public.Counter},
	}
	for _, transport := range public.Transports {
		credential.Transport = append(credential.Transport, protocol.AuthenticatorTransport(transport))
	}
	return credential
}

func publicOf(credential *webauthn.Credential) tenants.PublicCredential {
	public := tenants.PublicCredential{
		ID: credential.ID, PublicKey: credential.PublicKey, Counter: credential.Authenticator.SignCount,
		Model: credential.Authenticator.AAGUID, BackupEligible: credential.Flags.BackupEligible, BackedUp: credential.Flags.BackupState,
	}
	for _, transport := range credential.Transport {
		public.Transports = append(public.Transports, string(transport))
	}
	return public
}
