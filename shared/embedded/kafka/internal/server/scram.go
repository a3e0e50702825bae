package server

import (
	"bytes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// Mechanism is SCRAM's (RFC 5802), for one user. The password is never sent.
const Mechanism = "SCRAM-SHA-512"

const scramIterations = 4096 // as in Apache Kafka: the password is random, not chosen

// errSignIn means that the user or the password is wrong.
var errSignIn = errors.New("the user or its password is wrong")

var errNotScram = errors.New("not a message of " + Mechanism)

// A Secret is what a server knows of a user.
type Secret struct {
	user                 string
	salt                 []byte
	storedKey, serverKey []byte
}

func NewSecret(user, password string) (*Secret, error) {
	s := &Secret{user: user, salt: make([]byte, 32)}
	_, _ = rand.Read(s.salt)
	salted, err := pbkdf2.Key(sha512.New, password, s.salt, scramIterations, sha512.Size)
	if err != nil {
		return nil, err
	}
	stored := sha512.Sum512(mac(salted, []byte("Client Key")))
	s.storedKey, s.serverKey = stored[:], mac(salted, []byte("Server Key"))
	return s, nil
}

// A conversation is one client's sign-in: two messages, two answers.
type conversation struct {
	secret     *Secret
	known      bool // the user
	begun      bool
	nonce      string
	transcript []byte // of the first two messages
}

func (s *Secret) Begin() *conversation { return &conversation{secret: s} }

// Step answers a message. Done means that the client has proved that it
// knows the password. A wrong user is refused like a wrong password.
func (c *conversation) Step(message []byte) (answer []byte, done bool, err error) {
	if c.begun {
		answer, err = c.prove(string(message))
		return answer, err == nil, err
	}
	c.begun = true
	answer, err = c.challenge(string(message))
	return answer, false, err
}

// challenge answers "n,,n=user,r=nonce".
func (c *conversation) challenge(message string) ([]byte, error) {
	bare, found := strings.CutPrefix(message, "n,,")
	fields := strings.Split(bare, ",")
	if !found || len(fields) < 2 || !strings.HasPrefix(fields[0], "n=") || len(fields[1]) < 3 || !strings.HasPrefix(fields[1], "r=") {
		return nil, errNotScram
	}
	user := strings.NewReplacer("=2C", ",", "=3D", "=").Replace(fields[0][2:])
	c.known = subtle.ConstantTimeCompare([]byte(user), []byte(c.secret.user)) == 1
	c.nonce = fields[1][2:] + rand.Text()
	answer := fmt.Sprintf("r=%s,s=%s,i=%d", c.nonce, base64.StdEncoding.EncodeToString(c.secret.salt), scramIterations)
	c.transcript = []byte(bare + "," + answer)
	return []byte(answer), nil
}

// prove answers "c=biws,r=nonce,p=proof".
func (c *conversation) prove(message string) ([]byte, error) {
	at := strings.LastIndex(message, ",p=")
	if at < 0 || message[:at] != "c=biws,r="+c.nonce {
		return nil, errNotScram
	}
	proof, err := base64.StdEncoding.DecodeString(message[at+len(",p="):])
	if err != nil || len(proof) != sha512.Size {
		return nil, errNotScram
	}
	signed := append(bytes.Clone(c.transcript), ","+message[:at]...)
	key := make([]byte, sha512.Size)
	subtle.XORBytes(key, proof, mac(c.secret.storedKey, signed))
	stored := sha512.Sum512(key)
	if right := subtle.ConstantTimeCompare(stored[:], c.secret.storedKey) == 1; !right || !c.known {
		return nil, errSignIn
	}
	return []byte("v=" + base64.StdEncoding.EncodeToString(mac(c.secret.serverKey, signed))), nil
}

func mac(key, message []byte) []byte {
	h := hmac.New(sha512.New, key)
	h.Write(message)
	return h.Sum(nil)
}
