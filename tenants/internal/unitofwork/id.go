package unitofwork

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/weirlog/weir/tenants"
)

// NewID returns the id of what a request creates in an
// organization. With an idempotency key it is derived from
// that, the caller, the kind and the organization: a repeated
// request finds what it created, without a table of keys.
func (w *Writer) NewID(request Request, prefix, organization string) string {
	if request.IdempotencyKey == "" {
		return prefix + w.IDs()
	}
	scope := strings.Join([]string{request.Caller.ID, prefix, organization, request.IdempotencyKey}, "\n")
	sum := sha256.Sum256([]byte(scope))
	return prefix + hex.EncodeToString(sum[:16])
}

// Draw draws the id and the secret of what
// a request creates in an organization.
func (w *Writer) Draw(request Request, idPrefix, organization, secretPrefix string) (id string, secret tenants.Secret, err error) {
	secret, err = tenants.NewSecret(secretPrefix, w.Random)
	return w.NewID(request, idPrefix, organization), secret, err
}
