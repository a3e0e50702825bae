package passkey

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/weirlog/weir/tenants"
)

// ErrRefused means that an answer proves nothing.
var ErrRefused = errors.New("the passkey was not accepted")

// A RelyingParty is the site that passkeys belong to.
type RelyingParty struct {
	web *webauthn.WebAuthn
}

// A Challenge is what a browser has to answer: Options
// for the browser, Data for the check of the answer.
type Challenge struct {
	Options any
	Data    []byte
}

// A Proof shows that the sender of an answer
// has the private half of a credential.
type Proof struct {
	Credential []byte
	Counter    uint32
	BackedUp   bool
}

// A Holder is a member with their passkeys.
type Holder struct {
	tenants.Member
	Passkeys []tenants.Passkey
}

// New returns the party of a console's origin, such as https://weir.example.
// Passkeys belong to its host, which can't be an IP address.
func New(origin string) (*RelyingParty, error) {
	parsed, err := url.Parse(origin)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(parsed.Hostname()); err == nil {
		return nil, fmt.Errorf("%s can't have passkeys: its host is an address, not a name", origin)
	}
	required := true
	web, err := webauthn.New(&webauthn.Config{
		RPID: parsed.Hostname(), RPDisplayName: "Weir", RPOrigins: []string{origin}, AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			RequireResidentKey: &required, ResidentKey: protocol.ResidentKeyRequirementRequired,
			UserVerification: protocol.VerificationRequired, // a passkey alone signs in
		},
	})
	return &RelyingParty{web}, err
}

// BeginRegistration challenges a member to register
// a passkey, on a device without one of theirs.
func (p *RelyingParty) BeginRegistration(holder Holder) (Challenge, error) {
	var existing []protocol.CredentialDescriptor
	for _, credential := range (user{holder}).WebAuthnCredentials() {
		existing = append(existing, credential.Descriptor())
	}
	options, data, err := p.web.BeginRegistration(user{holder}, webauthn.WithExclusions(existing))
	return challengeOf(options, data, err)
}

// FinishRegistration checks the answer to BeginRegistration.
func (p *RelyingParty) FinishRegistration(holder Holder, data, answer []byte) (tenants.PublicCredential, error) {
	session, err := sessionOf(data)
	if err != nil {
		return tenants.PublicCredential{}, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil {
		return tenants.PublicCredential{}, refused(err)
	}
	credential, err := p.web.CreateCredential(user{holder}, session, parsed)
	if err != nil {
		return tenants.PublicCredential{}, refused(err)
	}
	return publicOf(credential), nil
}

// BeginSignIn challenges for any passkey of this party.
func (p *RelyingParty) BeginSignIn() (Challenge, error) {
	options, data, err := p.web.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	return challengeOf(options, data, err)
}

// FinishSignIn checks the answer to BeginSignIn, and returns its
// sender and proof. find finds the holder by the member's id.
func (p *RelyingParty) FinishSignIn(data, answer []byte, find func(member string) (Holder, error)) (found Holder, proof Proof, err error) {
	session, parsed, err := read(data, answer)
	if err != nil {
		return found, proof, err
	}
	var failed error // of the search itself
	_, credential, err := p.web.ValidatePasskeyLogin(func(_, member []byte) (webauthn.User, error) {
		if found, failed = find(string(member)); failed != nil {
			return nil, failed
		}
		return user{found}, nil
	}, session, parsed)
	if failed != nil {
		return found, proof, failed
	}
	if err != nil {
		return found, proof, refused(err)
	}
	return found, proofOf(credential, parsed), nil
}

// BeginConfirmation challenges a member for one of their passkeys.
func (p *RelyingParty) BeginConfirmation(holder Holder) (Challenge, error) {
	options, data, err := p.web.BeginLogin(user{holder}, webauthn.WithUserVerification(protocol.VerificationRequired))
	return challengeOf(options, data, err)
}

// FinishConfirmation checks the answer to BeginConfirmation.
func (p *RelyingParty) FinishConfirmation(holder Holder, data, answer []byte) (Proof, error) {
	session, parsed, err := read(data, answer)
	if err != nil {
		return Proof{}, err
	}
	credential, err := p.web.ValidateLogin(user{holder}, session, parsed)
	if err != nil {
		return Proof{}, refused(err)
	}
	return proofOf(credential, parsed), nil
}

func challengeOf(options any, data *webauthn.SessionData, err error) (Challenge, error) {
	if err != nil {
		return Challenge{}, err
	}
	encoded, err := json.Marshal(data)
	return Challenge{Options: options, Data: encoded}, err
}

func read(data, answer []byte) (session webauthn.SessionData, parsed *protocol.ParsedCredentialAssertionData, err error) {
	if session, err = sessionOf(data); err != nil {
		return session, nil, err
	}
	if parsed, err = protocol.ParseCredentialRequestResponseBytes(answer); err != nil {
		return session, nil, refused(err)
	}
	return session, parsed, nil
}

func sessionOf(data []byte) (session webauthn.SessionData, err error) {
	if err = json.Unmarshal(data, &session); err != nil {
		err = fmt.Errorf("cannot read the challenge that was kept: %w", err)
	}
	return session, err
}

func refused(err error) error {
	return fmt.Errorf("%w: %w", ErrRefused, err)
}

// proofOf returns the authenticator's count unchecked.
func proofOf(credential *webauthn.Credential, parsed *protocol.ParsedCredentialAssertionData) Proof {
	data := parsed.Response.AuthenticatorData
	return Proof{Credential: credential.ID, Counter: data.Counter, BackedUp: data.Flags.HasBackupState()}
}

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
