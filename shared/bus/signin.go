package bus

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// freshSecret signs in with the secret that the file holds then. As long as that
// stays, the mechanism does: SCRAM's derives its keys from a password once,
// which takes milliseconds.
type freshSecret struct {
	access Access

	mu     sync.Mutex
	secret string
	last   sasl.Mechanism // of that secret
}

// Name implements sasl.Mechanism.
func (r *freshSecret) Name() string { return r.access.mechanismName() }

// Start implements sasl.Mechanism.
func (r *freshSecret) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	mechanism, err := r.current()
	if err != nil {
		return nil, nil, err
	}
	return mechanism.Start(ctx)
}

// current returns how to sign in now.
func (r *freshSecret) current() (sasl.Mechanism, error) {
	secret, err := r.access.secret()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != nil && r.secret == secret {
		return r.last, nil
	}
	mechanism, err := r.access.mechanism(secret)
	if err == nil {
		r.secret, r.last = secret, mechanism
	}
	return mechanism, err
}

// secret is what the file holds.
func (a Access) secret() (string, error) {
	if a.TokenFile != "" {
		return secretIn(a.TokenFile, "token", "WEIR_BROKERS_TOKEN_FILE")
	}
	return secretIn(a.PasswordFile, fmt.Sprintf("password of user %q", a.User), "WEIR_BROKERS_PASSWORD_FILE")
}

func secretIn(file, what, setting string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot read the %s at the brokers (%s): %w", what, setting, err)
	}
	secret := strings.TrimRight(string(raw), "\r\n")
	if secret == "" {
		kind, _, _ := strings.Cut(what, " ")
		return "", fmt.Errorf("the file %q (%s) holds no %s", file, setting, kind)
	}
	return secret, nil
}

func (a Access) mechanism(secret string) (sasl.Mechanism, error) {
	switch a.mechanismName() {
	case bearerMechanism:
		return bearer{secret}, nil
	case defaultMechanism:
		return scram.Mechanism(scram.SHA512, a.User, secret)
	case "SCRAM-SHA-256":
		return scram.Mechanism(scram.SHA256, a.User, secret)
	case "PLAIN":
		return plain.Mechanism{Username: a.User, Password: secret}, nil
	}
	return nil, fmt.Errorf("WEIR_BROKERS_MECHANISM is %q: it can be SCRAM-SHA-512, SCRAM-SHA-256, PLAIN or OAUTHBEARER", a.Mechanism)
}
