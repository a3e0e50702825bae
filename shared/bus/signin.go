package bus

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// rereading signs in with the secret that the file holds then.
type rereading struct{ access Access }

// Name implements sasl.Mechanism.
func (r rereading) Name() string { return r.access.mechanismName() }

// Start implements sasl.Mechanism.
func (r rereading) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	mechanism, err := r.access.current()
	if err != nil {
		return nil, nil, err
	}
	return mechanism.Start(ctx)
}

// current returns how to sign in now.
func (a Access) current() (sasl.Mechanism, error) {
	if a.TokenFile != "" {
		token, err := secretIn(a.TokenFile, "token", "WEIR_BROKERS_TOKEN_FILE")
		return bearer{token}, err
	}
	password, err := secretIn(a.PasswordFile, fmt.Sprintf("password of user %q", a.User), "WEIR_BROKERS_PASSWORD_FILE")
	if err != nil {
		return nil, err
	}
	return a.mechanism(password)
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

func (a Access) mechanism(password string) (sasl.Mechanism, error) {
	switch a.mechanismName() {
	case defaultMechanism:
		return scram.Mechanism(scram.SHA512, a.User, password)
	case "SCRAM-SHA-256":
		return scram.Mechanism(scram.SHA256, a.User, password)
	case "PLAIN":
		return plain.Mechanism{Username: a.User, Password: password}, nil
	}
	return nil, fmt.Errorf("WEIR_BROKERS_MECHANISM is %q: it can be SCRAM-SHA-512, SCRAM-SHA-256, PLAIN or OAUTHBEARER", a.Mechanism)
}
