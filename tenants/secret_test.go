package tenants_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
)

const drawn = "0123456789abcdef01234567" // 24 bytes

// A secret is its prefix and 48 lower-case hexadecimal characters;
// its digest is the SHA-256 of all of it.
func TestNewSecret(t *testing.T) {
	secret, err := tenants.NewSecret(tenants.APIKeyPrefix, strings.NewReader(drawn))
	if err != nil || !regexp.MustCompile(`^weir_[0-9a-f]{48}$`).MatchString(secret.Reveal()) {
		t.Fatalf("got %q, %v", secret.Reveal(), err)
	}
	want := tenants.SecretDigest{
		Hash:  "01cb9e503b96670ca18e3aeea11f34b489d94a5fa6b50f5d459c33bcb10b4c0f",
		First: "3031", Last: "3637",
	}
	if got := secret.Digest(); got != want {
		t.Errorf("digest: got %+v, want %+v", got, want)
	}
}

// A failing source never yields a short or guessable secret.
func TestNewSecretNeedsAllItsBytes(t *testing.T) {
	if _, err := tenants.NewSecret(tenants.APIKeyPrefix, strings.NewReader(drawn[:23])); err == nil {
		t.Error("a secret was made of 23 bytes")
	}
	if _, err := tenants.NewSecret(tenants.APIKeyPrefix, iotest.ErrReader(fmt.Errorf("dry"))); err == nil {
		t.Error("a secret was made of nothing")
	}
}

// There is one canonical form, and a refused text is not in the error.
func TestParseSecret(t *testing.T) {
	digits := strings.Repeat("0123456789abcdef", 3)
	if secret, err := tenants.ParseSecret(tenants.ServiceTokenPrefix, "weirsvc_"+digits); err != nil || secret.Reveal() != "weirsvc_"+digits {
		t.Errorf("a service token: %v", err)
	}
	for _, text := range []string{"", digits, "weir_" + digits, "weirsvc_" + digits[1:], "weirsvc_" + digits + "0",
		"weirsvc_" + strings.ToUpper(digits), " weirsvc_" + digits, "weirsvc_" + digits + "\n"} {
		_, err := tenants.ParseSecret(tenants.ServiceTokenPrefix, text)
		if err == nil || strings.Contains(err.Error(), digits[1:]) {
			t.Errorf("%q: got error %v", text, err)
		}
	}
}

// No way of printing, logging or encoding shows a secret.
func TestSecretHidesItself(t *testing.T) {
	secret, err := tenants.NewSecret(tenants.APIKeyPrefix, strings.NewReader(drawn))
	testenv.Must(t, err)
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb, secret)
		fmt.Fprintf(&out, verb, struct{ Inside tenants.Secret }{secret})
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "secret", secret, "inside", struct{ S tenants.Secret }{secret})
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "secret", secret, "inside", struct{ S tenants.Secret }{secret})
	testenv.Must(t, json.NewEncoder(&out).Encode(secret))
	if digits := strings.TrimPrefix(secret.Reveal(), tenants.APIKeyPrefix); strings.Contains(out.String(), digits) {
		t.Errorf("the secret shows in %s", out.String())
	}
}

// Only what can be an id is looked up.
func TestIsID(t *testing.T) {
	for text, want := range map[string]bool{
		"org_0192": true, "A-z_9": true, strings.Repeat("a", 64): true,
		"": false, strings.Repeat("a", 65): false, "a\x00": false, "a/b": false, "ä": false, "*": false, "a b": false,
	} {
		if got := tenants.IsID(text); got != want {
			t.Errorf("IsID(%q) = %v", text, got)
		}
	}
}
