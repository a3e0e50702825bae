package password

import (
	"strings"
	"unicode"

	zxcvbn "github.com/ccojocar/zxcvbn-go"

	"github.com/weirlog/weir/tenants"
)

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
