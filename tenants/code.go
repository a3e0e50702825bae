package tenants

import (
	"errors"
	"fmt"
	"time"
)

// Prefixes of the codes that admit people before they can sign in.
// Each works once; only its digest is kept.
const (
	InvitationPrefix = "weirinv_" // to join an organization
	OwnerCodePrefix  = "weirown_" // to become the first owner of an installation
	ResetPrefix      = "weirpwd_" // to set a password that was lost
)

// How long the codes work.
const (
	InvitationLifetime = 7 * 24 * time.Hour
	OwnerCodeLifetime  = 24 * time.Hour
	ResetCodeLifetime  = 24 * time.Hour
)

// ErrCode means that a code can't be used. It wraps the reason, which is only
// for holders of the code: 192 random bits, which can't be guessed.
var (
	ErrCode        = errors.New("the code is not valid")
	ErrCodeUsed    = fmt.Errorf("the code was used: %w", ErrCode)
	ErrCodeRevoked = fmt.Errorf("the code was taken back: %w", ErrCode)
	ErrCodeExpired = fmt.Errorf("the code has expired: %w", ErrCode)
)

// An issuedCode is what is kept of one that was handed out.
type issuedCode struct {
	hash      string // see SecretDigest; empty: none is out
	usedAt    time.Time
	revokedAt time.Time
	expiresAt time.Time
}

// admits is nil if the issued code has a hash, and works at a time; see ErrCode.
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
