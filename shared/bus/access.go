package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// Access is how a process signs in at the brokers. Without a user it does not.
type Access struct {
	User         string `help:"User at the brokers. Without one they are used without signing in." env:"WEIR_BROKERS_USER"`
	PasswordFile string `help:"File with the password of the user at the brokers." env:"WEIR_BROKERS_PASSWORD_FILE"`
	Mechanism    string `help:"How the user signs in: PLAIN shows the password to whoever listens, the others do not." env:"WEIR_BROKERS_MECHANISM" enum:"SCRAM-SHA-512,SCRAM-SHA-256,PLAIN" default:"SCRAM-SHA-512"`
}

// Validate returns what is wrong with the settings.
func (a Access) Validate() error {
	if a.User == "" && a.PasswordFile != "" {
		return errors.New("WEIR_BROKERS_PASSWORD_FILE is set, but WEIR_BROKERS_USER is not: name the user whose password it is")
	}
	if a.User != "" && a.PasswordFile == "" {
		return errors.New("WEIR_BROKERS_USER is set, but WEIR_BROKERS_PASSWORD_FILE is not: name the file that holds the user's password")
	}
	return nil
}

const defaultMechanism = "SCRAM-SHA-512"

// DefaultDialTimeout is how long a Dialer that names no Timeout may take.
const DefaultDialTimeout = 5 * time.Second

// A Dialer makes connections to brokers.
type Dialer = kafka.Dialer

// Dialer authenticates its connections; nil, the default, where the brokers need none. Each reads
// the password anew, so that another one needs no restart.
func (a Access) Dialer() (*Dialer, error) {
	if err := a.Validate(); err != nil || a.User == "" {
		return nil, err
	}
	if _, err := a.current(); err != nil {
		return nil, err
	}
	return &Dialer{ClientID: "weir", Timeout: DefaultDialTimeout, SASLMechanism: rereading{a}}, nil
}

// rereading signs in with the password that its file has then.
type rereading struct{ access Access }

// Name implements sasl.Mechanism.
func (r rereading) Name() string { return cmp.Or(r.access.Mechanism, defaultMechanism) }

// Start implements sasl.Mechanism.
func (r rereading) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	mechanism, err := r.access.current()
	if err != nil {
		return nil, nil, err
	}
	return mechanism.Start(ctx)
}

// current is how the user signs in now.
func (a Access) current() (sasl.Mechanism, error) {
	raw, err := os.ReadFile(a.PasswordFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the password of user %q at the brokers (WEIR_BROKERS_PASSWORD_FILE): %w", a.User, err)
	}
	password := strings.TrimRight(string(raw), "\r\n")
	if password == "" {
		return nil, fmt.Errorf("the file %q (WEIR_BROKERS_PASSWORD_FILE) holds no password", a.PasswordFile)
	}
	return a.mechanism(password)
}

func (a Access) mechanism(password string) (sasl.Mechanism, error) {
	switch cmp.Or(a.Mechanism, defaultMechanism) {
	case defaultMechanism:
		return scram.Mechanism(scram.SHA512, a.User, password)
	case "SCRAM-SHA-256":
		return scram.Mechanism(scram.SHA256, a.User, password)
	case "PLAIN":
		return plain.Mechanism{Username: a.User, Password: password}, nil
	}
	return nil, fmt.Errorf("WEIR_BROKERS_MECHANISM is %q: it can be SCRAM-SHA-512, SCRAM-SHA-256 or PLAIN", a.Mechanism)
}
