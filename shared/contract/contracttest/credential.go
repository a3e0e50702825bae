package contracttest

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
)

// prefixes are those of secrets, by kind of credential.
var prefixes = map[string]string{
	contract.CredentialAPIKey:       identity.APIKeyPrefix,
	contract.CredentialServiceToken: identity.ServiceTokenPrefix,
	contract.CredentialSession:      identity.SessionPrefix,
}

// Issue publishes a credential, and returns its secret. By default it
// is active, in its first version, and its id is "id_" and the secret's
// first 8 digits.
func (o *Others) Issue(credential contract.Credential) (secret string) {
	o.t.Helper()
	var random [24]byte
	_, _ = rand.Read(random[:])
	digits := hex.EncodeToString(random[:])
	secret = prefixes[credential.Kind] + digits
	credential.ID = cmp.Or(credential.ID, "id_"+digits[:8])
	credential.State = cmp.Or(credential.State, contract.CredentialActive)
	credential.Version = cmp.Or(credential.Version, 1)
	o.PublishEvent(contract.TopicCredentials, contract.TypeCredentialChanged, contract.CredentialKey(secret), credential)
	return secret
}

// SignIn issues a session of a member of organization.
func (o *Others) SignIn(organization, role string) (secret string) {
	o.t.Helper()
	return o.Issue(contract.Credential{
		Kind: contract.CredentialSession, Organization: organization, Member: "mem_1", Scopes: []string{identity.RoleScope(role)},
	})
}

// Digest digests any text as ingest does.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
