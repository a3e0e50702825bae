package bus

import (
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/tenants"
)

// A published credential is the domain's state: unitofwork
// waits until the one is read back as the other.
func TestPublishedCredentialsAreTheDomains(t *testing.T) {
	digest := func(hash string) tenants.SecretDigest {
		return tenants.SecretDigest{Hash: hash, First: "ab12", Last: "9f3e"}
	}
	started := tenants.SessionStarted{Session: "ses_1", Organization: "org_1", Member: "mem_1", Role: tenants.Owner, Digest: digest("5e88"), At: noon,
		ExpiresAt: noon.Add(time.Hour)}
	renewed := func(hash string, after time.Duration) tenants.SessionRenewed {
		at := noon.Add(after)
		return tenants.SessionRenewed{Session: "ses_1", Digest: digest(hash), Salt: "s", At: at, ExpiresAt: at.Add(time.Hour), ReplacedUntil: at.Add(time.Minute)}
	}
	confirmed := tenants.SessionConfirmed{Session: "ses_1", Digest: digest("c0de"), At: noon.Add(10 * time.Second), ExpiresAt: noon.Add(time.Hour),
		ReplacedUntil: noon.Add(70 * time.Second)}
	ended := tenants.SessionEnded{Session: "ses_1", At: noon.Add(20 * time.Second)}
	for name, history := range map[string][]tenants.Event{
		"started":                        {started},
		"renewed":                        {started, renewed("4e10", time.Minute)},
		"renewed twice, long after":      {started, renewed("4e10", time.Minute), renewed("7b2a", time.Hour)},
		"renewed and confirmed at once":  {started, renewed("4e10", time.Second), confirmed},
		"ended":                          {started, ended},
		"renewed, confirmed, then ended": {started, renewed("4e10", time.Second), confirmed, ended},
	} {
		session := fold[tenants.Session](history...)
		if got, want := credentialsOf(sessionCredentials(session, int64(len(history)))...), session.Credentials(); !slices.Equal(got, want) {
			t.Errorf("a session that was %s: published %+v, the domain says %+v", name, got, want)
		}
	}
	for _, revocation := range []tenants.Revocation{{}, {At: noon}} {
		key := tenants.APIKey{ID: "key_1", Organization: "org_1", Digest: digest("5e88"), Revocation: revocation}
		if got, want := credentialsOf(apiKeyCredential(key, 1, noon)), key.Credentials(); !slices.Equal(got, want) {
			t.Errorf("a key: published %+v, the domain says %+v", got, want)
		}
		token := tenants.ServiceToken{ID: "tok_1", Organization: "org_1", Digest: digest("5e88"), Revocation: revocation}
		if got, want := credentialsOf(serviceTokenCredential(token, 1)), token.Credentials(); !slices.Equal(got, want) {
			t.Errorf("a token: published %+v, the domain says %+v", got, want)
		}
	}
}

// credentialsOf is what events publish, in the domain's form.
func credentialsOf(events ...outgoingEvent) (credentials []tenants.Credential) {
	for _, event := range events {
		state := event.value.(contract.Credential).State
		credentials = append(credentials, tenants.Credential{Hash: event.key, Revoked: state == contract.CredentialRevoked})
	}
	return credentials
}
