package bus

import (
	"cmp"
	"errors"
	"time"

	kafka "github.com/segmentio/kafka-go"
)

// Access is how a process signs in at the brokers, and whether over
// TLS. By default it does neither. Files are read for each connection,
// so that replacing them needs no restart.
type Access struct {
	User         string `help:"User at the brokers. Without one they are used without signing in." env:"WEIR_BROKERS_USER"`
	PasswordFile string `help:"File with the password of the user at the brokers." env:"WEIR_BROKERS_PASSWORD_FILE"`
	TokenFile    string `help:"File with the token that signs in by OAUTHBEARER, instead of a user." env:"WEIR_BROKERS_TOKEN_FILE"`
	Mechanism    string `help:"How to sign in: PLAIN and OAUTHBEARER show the secret to the other side, SCRAM does not. OAUTHBEARER needs TLS." env:"WEIR_BROKERS_MECHANISM" enum:"SCRAM-SHA-512,SCRAM-SHA-256,PLAIN,OAUTHBEARER" default:"SCRAM-SHA-512"`

	TLS      bool   `name:"tls" help:"Speak TLS with the brokers and verify their certificates. Each file below turns it on, too." env:"WEIR_BROKERS_TLS"`
	CAFile   string `help:"Authorities that the brokers' certificates are checked against, PEM; the system's when empty." env:"WEIR_BROKERS_CA_FILE"`
	CertFile string `help:"PEM file with the certificate that this process shows the brokers, and those up to its authority." env:"WEIR_BROKERS_CERT_FILE"`
	KeyFile  string `help:"PEM file with the key of that certificate." env:"WEIR_BROKERS_KEY_FILE"`
}

// The default mechanism of signing in, and the one that takes a token.
const (
	defaultMechanism = "SCRAM-SHA-512"
	bearerMechanism  = "OAUTHBEARER"
)

// Encrypts reports whether connections are made over TLS.
func (a Access) Encrypts() bool {
	return a.TLS || a.CAFile != "" || a.CertFile != "" || a.KeyFile != ""
}

// SignsIn reports whether connections authenticate.
func (a Access) SignsIn() bool { return a.User != "" || a.TokenFile != "" }

// Validate returns what is wrong with the settings.
func (a Access) Validate() error {
	return errors.Join(a.validateUser(), a.validateToken(), a.validateCertificate())
}

func (a Access) validateUser() error {
	if a.User == "" && a.PasswordFile != "" {
		return errors.New("WEIR_BROKERS_PASSWORD_FILE is set, but WEIR_BROKERS_USER is not: name the user whose password it is")
	}
	if a.User != "" && a.PasswordFile == "" {
		return errors.New("WEIR_BROKERS_USER is set, but WEIR_BROKERS_PASSWORD_FILE is not: name the file that holds the user's password")
	}
	return nil
}

func (a Access) validateToken() error {
	bearer := a.mechanismName() == bearerMechanism
	switch {
	case bearer && a.User != "":
		return errors.New("WEIR_BROKERS_USER is set, and WEIR_BROKERS_MECHANISM is OAUTHBEARER, where the token names the user: unset one")
	case bearer && a.TokenFile == "":
		return errors.New("WEIR_BROKERS_MECHANISM is OAUTHBEARER, but WEIR_BROKERS_TOKEN_FILE is not set: name the file that holds the token")
	case !bearer && a.TokenFile != "":
		return errors.New("WEIR_BROKERS_TOKEN_FILE is set, but WEIR_BROKERS_MECHANISM is not OAUTHBEARER: no other takes a token")
	case bearer && !a.Encrypts():
		return errors.New("WEIR_BROKERS_MECHANISM is OAUTHBEARER without TLS, which shows the token to the network: set WEIR_BROKERS_TLS or WEIR_BROKERS_CA_FILE")
	}
	return nil
}

func (a Access) validateCertificate() error {
	if (a.CertFile == "") != (a.KeyFile == "") {
		return errors.New("one of WEIR_BROKERS_CERT_FILE and WEIR_BROKERS_KEY_FILE is set: a certificate and its key go together")
	}
	return nil
}

// DefaultDialTimeout limits a dial without a Timeout.
const DefaultDialTimeout = 5 * time.Second

// A Dialer connects to brokers.
type Dialer = kafka.Dialer

// Dialer returns a dialer for the settings; nil if all are defaults. It
// fails if a file is missing or holds something else.
func (a Access) Dialer() (*Dialer, error) {
	if err := a.Validate(); err != nil || !a.Encrypts() && !a.SignsIn() {
		return nil, err
	}
	dialer := &Dialer{ClientID: "weir", Timeout: DefaultDialTimeout}
	if a.Encrypts() {
		if _, err := a.encryption(""); err != nil {
			return nil, err
		}
		dialer.DialFunc = a.dialEncrypted
	}
	if a.SignsIn() {
		mechanism := &freshSecret{access: a}
		if _, err := mechanism.current(); err != nil {
			return nil, err
		}
		dialer.SASLMechanism = mechanism
	}
	return dialer, nil
}

func (a Access) mechanismName() string { return cmp.Or(a.Mechanism, defaultMechanism) }
