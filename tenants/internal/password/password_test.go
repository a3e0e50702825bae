package password_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/password"
)

var nobody = password.Anonymous("192.0.2.0/32")

func hasher(t *testing.T) *password.Hasher {
	t.Helper()
	h, err := password.NewHasher(password.Slow(), rand.Reader)
	testenv.Must(t, err)
	return h
}

// A hash is of one password, salted, and has its parameters.
func TestHash(t *testing.T) {
	h := hasher(t)
	first, err := h.Hash(t.Context(), nobody, "correct horse")
	testenv.Must(t, err)
	if !strings.HasPrefix(first, "$argon2id$v=19$m=19456,t=2,p=1$") || strings.Contains(first, "horse") {
		t.Errorf("hash = %q", first)
	}
	if second, err := h.Hash(t.Context(), nobody, "correct horse"); err != nil || second == first {
		t.Errorf("the same password has the same hash twice: %v", err)
	}
	for candidate, want := range map[tenants.Password]bool{"correct horse": true, "Correct horse": false, "correct horse ": false, "": false} {
		if got, err := h.Matches(t.Context(), nobody, first, candidate); err != nil || got != want {
			t.Errorf("%q: got %t, %v", candidate.Reveal(), got, err)
		}
	}
}

// Hashes with parameters of another version still match: this is a
// published test vector of the reference implementation (argon2id, m =
// 65536, t = 2, p = 1, "password", "somesalt").
func TestOldHashesMatch(t *testing.T) {
	const vector = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	if got, err := hasher(t).Matches(t.Context(), nobody, vector, "password"); err != nil || !got {
		t.Errorf("got %t, %v", got, err)
	}
}

// What is no hash is an error, never a match.
func TestNoHash(t *testing.T) {
	h := hasher(t)
	for _, hash := range []string{"", "$", "plain", "$2b$10$abcdefghijklmnopqrstuv", "$argon2i$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$wWKIMhR9lyDFvRz9YTZweHKfbftvj+qf",
		"$argon2id$v=19$m=65536,t=0,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$",
		"$argon2id$v=19$m=19456,t=2,p=1$!$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"} {
		if got, err := h.Matches(t.Context(), nobody, hash, ""); err == nil || got {
			t.Errorf("%q: got %t, %v", hash, got, err)
		}
	}
	if err := h.MatchDummy(t.Context(), nobody, "correct horse"); err != nil {
		t.Error(err)
	}
}

// An asker who gives up waiting causes no work.
func TestHashGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := hasher(t).Hash(ctx, nobody, "correct horse"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
