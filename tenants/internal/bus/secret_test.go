package bus

import (
	"crypto/rand"
	"testing"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants"
)

// Secrets of each kind have the form that identity
// requires, and the key by which the contract finds
// them. Both are defined twice, and must not diverge.
func TestSecretsAreWhatOthersExpect(t *testing.T) {
	for issued, expected := range map[string]string{
		tenants.APIKeyPrefix:       identity.APIKeyPrefix,
		tenants.ServiceTokenPrefix: identity.ServiceTokenPrefix,
		tenants.SessionPrefix:      identity.SessionPrefix,
	} {
		secret, err := tenants.NewSecret(issued, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if !identity.WellFormed(expected, secret.Reveal()) {
			t.Errorf("a secret that begins with %q is not well-formed for identity, which expects %q", issued, expected)
		}
		if key := contract.CredentialKey(secret.Reveal()); secret.Digest().Hash != key {
			t.Errorf("%q: kept under %s, looked up under %s", issued, secret.Digest().Hash, key)
		}
		if _, err := tenants.ParseSecret(issued, secret.Reveal()); err != nil {
			t.Errorf("%q: tenants cannot read what it issued: %v", issued, err)
		}
	}
}
