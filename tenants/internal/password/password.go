package password

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	zxcvbn "github.com/ccojocar/zxcvbn-go"
	"golang.org/x/crypto/argon2"

	"github.com/weirlog/weir/tenants"
)

const (
	lanes   = 1
	saltLen = 16 // bytes
	keyLen  = 32 // bytes
)

// A Cost is what a hash costs, and so each guess at a password.
type Cost struct {
	Memory uint32 // KiB, at least 8
	Passes uint32 // over the memory, at least 1
}

// Slow is the first recommendation of OWASP's Password Storage
// Cheat Sheet for argon2id, with one lane: 19 MiB, two passes.
func Slow() Cost { return Cost{Memory: 19 * 1024, Passes: 2} }

// ForTests costs next to nothing. Such hashes do not protect passwords.
func ForTests() Cost { return Cost{Memory: 8, Passes: 1} }

// A Hasher hashes passwords. Safe for concurrent use.
type Hasher struct {
	cost   Cost
	random io.Reader
	turns  turns
	dummy  string // hash of a random password
}

// NewHasher returns a hasher of that cost, with
// salts from random, a cryptographic source.
func NewHasher(cost Cost, random io.Reader) (*Hasher, error) {
	h := &Hasher{cost: cost, random: random, turns: newTurns(cost)}
	secret, err := tenants.NewSecret("", random)
	if err != nil {
		return nil, err
	}
	h.dummy, err = h.Hash(context.Background(), Known("start"), tenants.Password(secret.Reveal()))
	return h, err
}

// Hash returns the hash of a password, with a new salt.
// It waits for the asker's turn, or fails with ErrBusy.
func (h *Hasher) Hash(ctx context.Context, who Asker, password tenants.Password) (string, error) {
	made := parameters{memory: h.cost.Memory, passes: h.cost.Passes, lanes: lanes, salt: make([]byte, saltLen)}
	if _, err := io.ReadFull(h.random, made.salt); err != nil {
		return "", fmt.Errorf("cannot draw a salt: %w", err)
	}
	key, err := h.derive(ctx, who, made, password, keyLen)
	if err != nil {
		return "", err
	}
	return made.String() + "$" + base64.RawStdEncoding.EncodeToString(key), nil
}

// Matches reports whether hash is that of password. It waits like Hash.
func (h *Hasher) Matches(ctx context.Context, who Asker, hash string, password tenants.Password) (bool, error) {
	kept, want, err := parse(hash)
	if err != nil {
		return false, err
	}
	key, err := h.derive(ctx, who, kept, password, uint32(len(want))) //nolint:gosec // 16 to 64: see parse
	return err == nil && subtle.ConstantTimeCompare(key, want) == 1, err
}

// MatchDummy takes as long as Matches. Without
// a hash, the duration must not reveal that.
func (h *Hasher) MatchDummy(ctx context.Context, who Asker, password tenants.Password) error {
	_, err := h.Matches(ctx, who, h.dummy, password)
	return err
}

func (h *Hasher) derive(ctx context.Context, who Asker, p parameters, password tenants.Password, length uint32) ([]byte, error) {
	release, err := h.turns.take(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	return argon2.IDKey([]byte(password.Reveal()), p.salt, p.passes, p.memory, p.lanes, length), nil
}

// parameters are those in a hash.
type parameters struct {
	memory uint32 // KiB
	passes uint32
	lanes  uint8
	salt   []byte
}

func (p parameters) String() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s", argon2.Version, p.memory, p.passes, p.lanes,
		base64.RawStdEncoding.EncodeToString(p.salt))
}

// parse reads a hash. Its error does not show it.
func parse(hash string) (p parameters, key []byte, err error) {
	head, encoded, found := cutLast(hash, "$")
	head, salt, found2 := cutLast(head, "$")
	if !found || !found2 {
		return p, nil, errors.New("cannot read a password hash: it lacks a part")
	}
	var version int
	_, err = fmt.Sscanf(head, "$argon2id$v=%d$m=%d,t=%d,p=%d", &version, &p.memory, &p.passes, &p.lanes)
	if err != nil || version != argon2.Version || p.passes < 1 || p.lanes < 1 {
		return p, nil, fmt.Errorf("cannot read a password hash: it is no argon2id of version %d", argon2.Version)
	}
	if p.salt, err = base64.RawStdEncoding.DecodeString(salt); err != nil {
		return p, nil, fmt.Errorf("cannot read the salt of a password hash: %w", err)
	}
	if key, err = base64.RawStdEncoding.DecodeString(encoded); err != nil || len(key) < 16 || len(key) > 64 {
		return p, nil, errors.New("cannot read a password hash: its key is no 16 to 64 bytes")
	}
	return p, key, nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// Bounds of the estimate: the work grows with the
// square of the length, and the beginning decides.
const (
	maxEstimated = 64 // bytes
	maxAbout     = 100
)

// commonScore is the score of zxcvbn below which a
// password takes fewer than 10^8 guesses: common, or made
// of common words, patterns and facts about its owner.
const commonScore = 2

// product is a word that is guessed first here.
const product = "weir"

// CheckCommon refuses a password among the first guesses of
// somebody with facts about its owner, such as name and address.
func CheckCommon(password tenants.Password, about ...string) error {
	if !Common(password, append(about, product)...) {
		return nil
	}
	return tenants.Invalid{{
		Field: "password", Detail: "password is among the first that are guessed: it is a common one, a pattern of keys, or made of what is known of you.",
		Fix: "Use several words that have nothing to do with each other or with you.",
	}}
}

// Common reports whether CheckCommon refuses a password.
func Common(password tenants.Password, about ...string) bool {
	var words []string
	for _, text := range about {
		text = clip(text, maxAbout)
		words = append(append(words, text), strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })...)
	}
	return zxcvbn.PasswordStrength(clip(password.Reveal(), maxEstimated), words).Score < commonScore
}

func clip(text string, limit int) string { return text[:min(len(text), limit)] }
