package identity

import (
	"errors"
	"net/http"
	"strings"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
)

// Prefixes by which secret scanners and people recognize credentials.
const (
	APIKeyPrefix       = "weir_"
	ServiceTokenPrefix = "weirsvc_"
)

// secretDigits is how many hexadecimal characters follow a prefix: 192 random bits.
const secretDigits = 48

// WellFormed reports whether secret is prefix and 48 lower-case
// hexadecimal characters.
func WellFormed(prefix, secret string) bool {
	digits, ok := strings.CutPrefix(secret, prefix)
	return ok && len(digits) == secretDigits && strings.Trim(digits, "0123456789abcdef") == ""
}

// APIKey returns the holder of an API key, or the 401 with the reason:
// the same for an unknown key and a malformed one.
func APIKey(credentials *Credentials, key string) (Principal, error) {
	if key == "" {
		return Principal{}, unauthorized("ApiKey", "missing_api_key", "There is no API key. Send it in the header x-api-key.")
	}
	principal, err := lookup(credentials, APIKeyPrefix, contract.CredentialAPIKey, key)
	switch {
	case isProblem(err):
		return Principal{}, err
	case errors.Is(err, ErrRevoked):
		return Principal{}, unauthorized("ApiKey", "api_key_revoked", "The API key was revoked. Create a new one under API Keys.")
	case errors.Is(err, ErrExpired):
		return Principal{}, unauthorized("ApiKey", "api_key_expired", "The API key has expired. Create a new one under API Keys.")
	case err != nil:
		return Principal{}, unauthorized("ApiKey", "invalid_api_key", "The API key is not valid. Check that it was copied whole.")
	}
	return principal, nil
}

func bearer(credentials *Credentials, r *http.Request) (Principal, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return Principal{}, unauthorized("Bearer", "missing_token",
			"There is no service token. Send it in the header Authorization: Bearer weirsvc_….")
	}
	principal, err := lookup(credentials, ServiceTokenPrefix, contract.CredentialServiceToken, strings.TrimSpace(token))
	if isProblem(err) {
		return Principal{}, err
	}
	if err != nil {
		return Principal{}, unauthorized("Bearer", "invalid_token", "The service token is not valid, was revoked or has expired.")
	}
	return principal, nil
}

// lookup takes as long for a malformed secret as for an unknown one.
func lookup(credentials *Credentials, prefix, kind, secret string) (Principal, error) {
	principal, err := credentials.Lookup(secret)
	if err == nil && (principal.Kind != kind || !WellFormed(prefix, secret)) {
		return Principal{}, ErrUnknown
	}
	return principal, err
}

func unauthorized(scheme, code, detail string) *httpapi.Problem {
	return httpapi.NewProblem(http.StatusUnauthorized, code, detail).WithHeader("WWW-Authenticate", scheme)
}
