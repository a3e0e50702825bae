package password

import (
	"strings"
	"unicode"

	zxcvbn "github.com/ccojocar/zxcvbn-go"

	"github.com/weirlog/weir/tenants"
)

// Bounds of what is looked at: the work grows with the square of the length, and the beginning decides.
const (
	maxEstimated = 64 // bytes
	maxAbout     = 100
)

// commonScore is the score of zxcvbn below which a password falls to 10^8 guesses: it is common, or made of common ones,
// patterns and what is known of its owner.
const commonScore = 2

// product is a word that somebody who guesses here tries first.
const product = "weir"

// CheckCommon refuses a password that is among the first that anybody would try who knows what its owner is about.
func CheckCommon(password tenants.Password, about ...string) error {
	if !Common(password, append(about, product)...) {
		return nil
	}
	return tenants.Invalid{{
		Field: "password", Detail: "password is among the first that are guessed: it is a common one, a pattern of keys, or made of what is known of you.",
		Fix: "Use several words that have nothing to do with each other or with you.",
	}}
}

// Common reports whether a password is among the first guesses of anybody who knows about its owner, such as name and address.
func Common(password tenants.Password, about ...string) bool {
	var words []string
	for _, text := range about {
		text = clip(text, maxAbout)
		words = append(append(words, text), strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })...)
	}
	return zxcvbn.PasswordStrength(clip(password.Reveal(), maxEstimated), words).Score < commonScore
}

func clip(text string, limit int) string { return text[:min(len(text), limit)] }
