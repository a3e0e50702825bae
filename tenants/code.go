package tenants

import (
	"errors"
	"fmt"
	"time"
)

// Prefixes of codes for people who can't sign in
// yet. Each works once; only its digest is stored.
const (
	InvitationPrefix = "weirinv_" // to join an organization
	OwnerCodePrefix  = "weirown_" // to become the first owner of an installation
	ResetPrefix      = "weirpwd_" // to set a new password
)

// How long the codes work.
const (
	InvitationLifetime = 7 * 24 * time.Hour
	OwnerCodeLifetime  = 24 * time.Hour
	ResetCodeLifetime  = 24 * time.Hour
)

// ErrCode means that a code can't be used. It wraps the reason, which
// only holders of the code may learn: nobody guesses 192 random bits.
var (
	ErrCode        = errors.New("the code is not valid")
	ErrCodeUsed    = fmt.Errorf("the code was used: %w", ErrCode)
	ErrCodeRevoked = fmt.Errorf("the code was taken back: %w", ErrCode)
	ErrCodeExpired = fmt.Errorf("the code has expired: %w", ErrCode)
)

// An issuedCode is what is stored of an issued code.
type issuedCode struct {
	hash      string // see SecretDigest; empty: none is issued
	usedAt    time.Time
	revokedAt time.Time
	expiresAt time.Time
}

// admits is nil if hash is that of the issued code,
// and the code works at a time; else see ErrCode.
func (c issuedCode) admits(hash string, at time.Time) error {
	switch {
	case c.hash == "" || c.hash != hash:
		return ErrCode
	case !c.usedAt.IsZero():
		return ErrCodeUsed
	case !c.revokedAt.IsZero():
		return ErrCodeRevoked
	case !at.Before(c.expiresAt):
		return ErrCodeExpired
	}
	return nil
}
