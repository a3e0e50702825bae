package tenants

// A Credential is the present state of a secret.
type Credential struct {
	Hash    string // see SecretDigest
	Revoked bool
}

// A CredentialHolder is an entity with secrets, such as an API key.
type CredentialHolder interface {
	Credentials() []Credential
}

// Credentials are those of what is deleted, as one; none once it is gone.
func (d Deletion) Credentials() []Credential {
	if d.State() == Gone {
		return nil
	}
	return []Credential{{d.Kind() + "/" + d.ID(), d.State() != DeletionCancelledState}}
}

// Credentials are that of the key.
func (k APIKey) Credentials() []Credential {
	return []Credential{{k.Digest.Hash, k.Revocation.state() == Revoked}}
}

// Credentials are that of the token.
func (s ServiceToken) Credentials() []Credential {
	return []Credential{{s.Digest.Hash, s.Revocation.state() == Revoked}}
}

// Credentials are those of the session's
// secret, the previous one and the dropped one.
func (s Session) Credentials() []Credential {
	revoked := s.Revocation.state() == Revoked
	held := []Credential{{s.Digest.Hash, revoked}}
	if s.Replaced.Digest != (SecretDigest{}) {
		held = append(held, Credential{s.Replaced.Digest.Hash, revoked})
	}
	if s.Dropped != (SecretDigest{}) {
		held = append(held, Credential{s.Dropped.Hash, true})
	}
	return held
}
